/** A command line, read by the data of commands.json. What is wrong with it is said as the Python command line says it. */

import { near } from "./closeness.js";
import { commandAt, namesBelow, elsewhere, type Command, type Parameter } from "./commands.js";
import { Given, type Value } from "./given.js";
import { anyNumber, wholeNumber } from "./numbers.js";
import { quotedText } from "../quoting.js";
import { WrongUsage } from "./wrongusage.js";
import { optionsOf, readWords, type Words } from "./words.js";

export type Parsed = { what: "help"; text: string } | { what: "version" } | { what: "nothing" } | { what: "run"; command: Command; given: Given };

/** Throws WrongUsage. */
export function parse(words: readonly string[]): Parsed {
  let command = commandAt([]) as Command;
  let rest = words;
  let version = false;
  for (;;) {
    if (rest.length === 0 && command.group && (!command.runs_alone || command.path.length === 0)) return { what: "help", text: command.help };
    const found = readWords(command, rest);
    if (found.help) return { what: "help", text: command.help };
    const given = valuesOf(command, found);
    if (!command.group) return { what: "run", command, given };
    version ||= given.flag("version");
    if (found.rest.length === 0) return alone(command, given, version);
    const below = childOf(command, found.rest);
    if ("what" in below) return below;
    if (version) return { what: "version" };
    [command, rest] = [below, found.rest.slice(1)];
  }
}

/** A group without a command behind it. */
function alone(command: Command, given: Given, version: boolean): Parsed {
  if (version) return { what: "version" };
  if (command.path.length === 0) return { what: "nothing" };
  if (command.runs_alone) return { what: "run", command, given };
  throw new WrongUsage("Missing command.", command.path);
}

function childOf(group: Command, words: readonly string[]): Command | Parsed {
  const name = words[0] ?? "";
  const found = commandAt([...group.path, name]);
  if (found !== undefined && name !== "") return found;
  if (name.startsWith("-") && readWords(group, [name]).help) return { what: "help", text: group.help };
  const known = group.path.length === 0 ? elsewhere(name) : undefined;
  if (known !== undefined) throw new WrongUsage(known, group.path);
  const nearest = near(name, namesBelow(group.path));
  const hint = nearest.length > 0 ? `. Did you mean ${nearest.map(quotedText).join(", ")}?` : "";
  throw new WrongUsage(`No such command ${quotedText(name)}${hint}`, group.path);
}

// --- values ----------------------------------------------------------------------------------------------------------------------------------

/** In the order in which they were given, then what was not: so that the first mistake is the one that is told. */
function valuesOf(command: Command, found: Words): Given {
  const options = optionsOf(command);
  const places = command.parameters.filter((one) => one.argument);
  const [texts, extra] = placed(places, command.group ? [] : found.rest);
  const given = new Map<string, Value>();
  for (const parameter of new Set([...found.order, ...places, ...options])) {
    const value = valueOf(parameter, parameter.argument ? texts.get(parameter) : found.values.get(parameter), command);
    if (value !== undefined) given.set(parameter.name, value);
  }
  if (extra.length > 0) throw new WrongUsage(`Got unexpected extra argument(s) (${extra.join(" ")})`, command.path);
  return new Given(given);
}

/** Arguments take words from the left; one that takes several takes all. */
function placed(places: readonly Parameter[], words: readonly string[]): [Map<Parameter, string[]>, readonly string[]] {
  const found = new Map<Parameter, string[]>();
  let rest = words;
  for (const place of places) {
    const count = place.several ? rest.length : 1;
    if (rest.length > 0) found.set(place, rest.slice(0, count));
    rest = rest.slice(count);
  }
  return [found, rest];
}

function valueOf(parameter: Parameter, texts: readonly string[] | undefined, command: Command): Value | undefined {
  if (texts === undefined || texts.length === 0) {
    if (parameter.required) throw new WrongUsage(`Missing ${parameter.argument ? "argument" : "option"} ${hint(parameter)}.`, command.path);
    return undefined;
  }
  if (parameter.kind === "flag") return true;
  if (parameter.several) return texts;
  const last = texts.at(-1) ?? "";
  return parameter.kind === "text" ? last : numberOf(parameter, last, command);
}

function numberOf(parameter: Parameter, text: string, command: Command): number {
  const whole = parameter.kind === "int";
  const value = whole ? wholeNumber(text) : anyNumber(text);
  const problem =
    value === undefined
      ? whole ? "a valid integer, unable to parse string as an integer" : "a valid number, unable to parse string as a number"
      : parameter.min !== undefined && !(value >= parameter.min) ? `greater than or equal to ${String(parameter.min)}`
      : parameter.max !== undefined && !(value <= parameter.max) ? `less than or equal to ${String(parameter.max)}`
      : undefined;
  if (value === undefined || problem !== undefined) {
    throw new WrongUsage(`Invalid value for ${hint(parameter)}: Input should be ${problem ?? ""}`, command.path);
  }
  return value;
}

function hint(parameter: Parameter): string {
  return parameter.argument ? `'${parameter.metavar}'` : parameter.flags.map((flag) => `'${flag}'`).join(" / ");
}
