// Every call of calls.json that the server has a tool for, one after the other. What a step keeps is there for the steps behind it as $name.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const STEPS = JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"));

function filled(value, kept) {
  if (typeof value === "string" && value.startsWith("$") && value.slice(1) in kept) return kept[value.slice(1)];
  if (typeof value === "string") return value.replace(/\$(\w+)/g, (whole, name) => kept[name] ?? whole);
  if (Array.isArray(value)) return value.map((one) => filled(one, kept));
  if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, kept)]));
  return value;
}

function check(step, result, kept) {
  const text = result.content.map((part) => part.text ?? "").join("\n");
  const told = `${step.tool} ${JSON.stringify(step.arguments)}: ${text}`;
  if (step.fails !== undefined) {
    if (!result.isError || !text.includes(step.fails)) throw new Error(told);
    return;
  }
  if (result.isError) throw new Error(told);
  for (const [key, wanted] of Object.entries(filled(step.expect ?? {}, kept))) {
    if (!isDeepStrictEqual(result.structuredContent[key], wanted)) throw new Error(`${told}: ${key} is not ${JSON.stringify(wanted)}`);
  }
  for (const [key, name] of Object.entries(step.keep ?? {})) kept[name] = result.structuredContent[key];
  if (step.text !== undefined) kept[step.text] = text;
  if (step.json !== undefined && !isDeepStrictEqual(JSON.parse(text), filled(step.json, kept))) throw new Error(told);
}

/** Which tools were called. The client itself checks what is answered against the schema of the tool. */
export async function walk(client, tools) {
  const kept = {};
  const called = new Set();
  for (const step of STEPS.filter(({ tool }) => tools.includes(tool))) {
    check(step, await client.callTool({ name: step.tool, arguments: filled(step.arguments, kept) }), kept);
    called.add(step.tool);
  }
  return [...called];
}
