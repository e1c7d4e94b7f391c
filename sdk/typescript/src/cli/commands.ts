/** Every command and its options, as data: made from the Python command line, so that there is one truth. */

import { readFileSync } from "node:fs";

export interface Parameter {
  name: string;
  /** by its place, and not by a flag */
  argument: boolean;
  flags: string[];
  kind: "flag" | "text" | "int" | "float";
  several: boolean;
  required: boolean;
  metavar: string;
  min?: number;
  max?: number;
}

export interface Command {
  path: string[];
  group: boolean;
  /** a group that does something by itself, too */
  runs_alone: boolean;
  parameters: Parameter[];
  help: string;
}

export interface Exits {
  done: number;
  raised: number;
  usage: number;
  refused: number;
  unreachable: number;
  interrupted: number;
  reader_gone: number;
}

interface Data {
  exits: Exits;
  /** codes of errors that mean that nobody was reached */
  unreached: string[];
  /** what the Python command line has, and this one has not, and how that is said */
  server_only: { commands: string[]; sentence: string };
  commands: Command[];
}

const data = JSON.parse(readFileSync(new URL("../generated/commands.json", import.meta.url), "utf8")) as Data;

export const EXITS: Readonly<Exits> = data.exits;
export const UNREACHED: ReadonlySet<string> = new Set(data.unreached);
export const COMMANDS: readonly Command[] = data.commands;

/** Of the whole command line; `serve` and its like need the server's own computer, and are Python's. What is said of one; undefined for any other word. */
export function elsewhere(name: string): string | undefined {
  const { commands, sentence } = data.server_only;
  return commands.includes(name) ? sentence.replace("{command}", name) : undefined;
}

const byPath = new Map(COMMANDS.map((command) => [command.path.join(" "), command]));

export function commandAt(path: readonly string[]): Command | undefined {
  return byPath.get(path.join(" "));
}

export function namesBelow(path: readonly string[]): string[] {
  const depth = path.length;
  return COMMANDS.filter((one) => one.path.length === depth + 1 && path.every((word, i) => one.path[i] === word)).map((one) => one.path[depth] ?? "");
}
