/** Rows for people and for scripts: aligned columns under a heading on a terminal, tab-separated plain lines elsewhere. And JSON for programs. */

import { ExactNumber } from "../exactjson.js";
import { coloured, onTerminal, print } from "./output.js";
import { printable } from "../quoting.js";
import { dumps, spelled } from "./spelling.js";

const NAME_WIDTH = 22; // at least

export function printRows(heading: readonly string[], rows: Iterable<readonly unknown[]>): void {
  if (!onTerminal.stdout) {
    for (const row of rows) print(row.map((cell) => plain(cell)).join("\t"));
    return;
  }
  for (const line of table(heading, rows)) print(line);
}

export function table(heading: readonly string[], rows: Iterable<readonly unknown[]>, strong: (text: string) => string = bold): string[] {
  const whole = [...rows].map((row) => row.map((cell) => plain(cell)));
  const widths = heading.map((name, i) => Math.max(width(name), ...whole.map((row) => width(row[i] ?? ""))));
  return [strong(aligned(heading, widths)), ...whole.map((row) => aligned(row, widths))];
}

export function printFields(fields: Iterable<readonly [string, unknown]>): void {
  const found = [...fields];
  const width = Math.max(NAME_WIDTH, ...found.map(([name]) => name.length + 2));
  for (const [name, value] of found) {
    print(onTerminal.stdout ? `${name.padEnd(width)}${plain(value, name)}` : `${name}\t${plain(value, name)}`);
  }
}

export function printJson(value: unknown): void {
  print(dumps(value, 1));
}

/** One line without anything that a terminal would obey. `field` is where it stood. */
export function plain(value: unknown, field = ""): string {
  const shown = isObject(value)
    ? Object.entries(value).map(([name, one]) => `${word(name, true)}=${word(one)}`).join(" ")
    : value;
  return printable(shown === null || shown === undefined || shown === "" ? "-" : spelled(shown, field));
}

/** In quotes where it would else be taken for more than one: nobody's value makes a field of its own. */
function word(value: unknown, ofName = false): string {
  if (typeof value === "string" && value !== "" && !(ofName ? /[ "=]/ : /[ "]/).test(value)) return value;
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value) || isObject(value)) return readable(value);
  return spelled(value);
}

/** JSON as Python spaces it, with letters left as they are. */
function readable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(readable).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${readable(one)}`).join(", ")}}`;
  return typeof value === "string" ? JSON.stringify(value) : dumps(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

export function bold(text: string): string {
  return coloured() ? `\x1b[1m${text}\x1b[0m` : text;
}

const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** Of bytes, as people read it. */
export function size(count: number): string {
  if (count < 1000) return `${String(count)} B`;
  const power = [1, 2, 3].find((one) => count < 1000 ** (one + 1)) ?? 4;
  return `${(count / 1000 ** power).toFixed(1)} ${UNITS[power - 1] ?? ""}`;
}

/** An RFC 3339 time, to the second. */
export function moment(text: string | null | undefined): string {
  if (text === null || text === undefined) return "-";
  return text.length > 19 ? `${text.slice(0, 19)}Z` : text;
}

function aligned(cells: readonly string[], widths: readonly number[]): string {
  return cells.map((cell, i) => cell + " ".repeat((widths[i] ?? 0) - width(cell))).join("  ").trimEnd();
}

function width(text: string): number {
  return [...text].length;
}
