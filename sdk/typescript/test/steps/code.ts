/** Steps that run code: of a machine, of a repl, of an instruction. */

import type { ExecOptions, Functions, Instruction, Machine, Repl, Result } from "../../src/surface.js";
import type { Given } from "./given.js";
import { isFields, type Json } from "./matching.js";
import type { Done } from "./things.js";

/** Cuts every connection. */
export type Cut = () => Promise<void>;

const WATCHED = ["cut_after_lines", "interrupt_after_lines"] as const;

export async function run(on: Machine | Repl, given: Given, cut: Cut): Promise<Done> {
  const options = { ...given.without<ExecOptions>("code", "functions", ...WATCHED), functions: functionsOf(given) };
  if (WATCHED.every((name) => given.maybeNumber(name) === undefined)) return { got: shown(await on.run(given.text("code"), options)) };
  return await watched(await on.exec(given.text("code"), options), given, cut);
}

export async function exec(on: Machine | Repl, given: Given): Promise<Done> {
  const instruction = await on.exec(given.text("code"), given.without<ExecOptions>("code"));
  return { got: { number: instruction.number }, made: instruction };
}

export async function watched(instruction: Instruction, given: Given, cut: Cut): Promise<Done> {
  const [cutAfter, interruptAfter] = WATCHED.map((name) => given.maybeNumber(name));
  let lines = 0;
  const on_stdout = async (): Promise<void> => {
    lines++;
    if (lines === cutAfter) await cut();
    if (lines === interruptAfter) await instruction.interrupt();
  };
  return { got: shown(await instruction.result({ on_stdout, functions: functionsOf(given), wait_seconds: given.maybeNumber("wait_seconds") })) };
}

export async function stream(machine: Machine | Repl, given: Given, cut: Cut): Promise<Done> {
  const lines: string[] = [];
  for await (const line of machine.stream(given.text("code"), given.without<ExecOptions>("code", ...WATCHED))) {
    lines.push(line.text);
    if (lines.length === given.maybeNumber("cut_after_lines")) await cut();
  }
  return { got: { lines } };
}

export async function interrupt(on: Machine | Instruction | Repl, given: Given): Promise<Done> {
  const interrupted = "position" in on ? await on.interrupt(given.maybeNumber("instruction"), { pending: given.is("pending") }) : await on.interrupt(given.without<object>());
  return { got: { interrupted } };
}

function shown(result: Result): object {
  return { ...(result as object), displays: result.displays.map(({ data }) => data) };
}

function functionsOf(given: Given): Functions | undefined {
  const found = given.object("functions");
  return found && Object.fromEntries(Object.entries(found).map(([name, answer]) => [name, () => answered(answer)]));
}

function answered(answer: Json): Json {
  if (isFields(answer) && "$raises" in answer) throw new Error(answer["$raises"] as string);
  return answer;
}
