/** Where a piece of Python ends: what Enter at the prompt asks, and what cuts a stream of lines into instructions. No I/O. */

import { scan, type LogicalLine } from "./pythonlines.js";

export const INDENT = 4;
/** "open": it could be run, and could go on, as a loop whose body may have more lines. */
export type State = "incomplete" | "open" | "complete";

const COMPOUND = /^(?:(?:async\s+)?(?:def|for|with)|class|while|if|try|elif|else|except|finally)\b|^@|^match\b.*:$/;
const GOES_ON = /^(?:[ \t)\]}]|(?:elif|else|except|finally|case)\b)/;
const LEAVES = /^(?:return|raise|break|continue|pass)\b/;

export function state(code: string): State {
  if (code.startsWith("%%")) return "open"; // a cell of IPython's: whatever stands in it
  if (/^[%!?]/.test(code) || code.trimEnd().endsWith("?")) return "complete";
  const found = scan(code);
  if (found.end === "open") return "incomplete";
  const shape = found.end === "wrong" ? "wrong" : shapeOf(found.lines);
  if (shape === "unfinished") return "incomplete";
  if (shape === "wrong") return stateOfWrong(code);
  const last = found.lines.filter((line) => line.indent === 0).at(-1);
  return last !== undefined && COMPOUND.test(last.text) && last.text.includes(":") ? "open" : "complete";
}

/** Wrong, or of a younger Python than we know: the machine's own says which. A block that was begun may be finished before. */
function stateOfWrong(code: string): State {
  const last = lastLine(code);
  if (/[:\\]$/.test(last.trimEnd())) return "incomplete";
  return /^\s/.test(last) ? "open" : "complete";
}

/** Do the lines stand under one another as Python wants it? "unfinished": something must still follow. */
function shapeOf(lines: readonly LogicalLine[]): "whole" | "unfinished" | "wrong" {
  const levels = [{ indent: 0, tries: false }];
  let wants: "body" | "definition" | "" = "";
  for (const line of lines) {
    if (wants === "body") {
      if (line.indent <= (levels.at(-1)?.indent ?? 0)) return "wrong";
      levels.push({ indent: line.indent, tries: false });
    }
    while (line.indent < (levels.at(-1)?.indent ?? 0)) if (levels.pop()?.tries) return "wrong";
    const level = levels.at(-1);
    if (level?.indent !== line.indent) return "wrong";
    const ends = /^(?:except|finally)\b/.test(line.text);
    if (level.tries !== ends && (level.tries || !follows(lines, line))) return "wrong";
    if (wants === "definition" && !/^(?:@|(?:async\s+)?def\b|class\b)/.test(line.text)) return "wrong";
    level.tries = /^try\b/.test(line.text);
    wants = line.text.endsWith(":") ? "body" : line.text.startsWith("@") ? "definition" : "";
  }
  return wants !== "" || levels.some((level) => level.tries) ? "unfinished" : "whole";
}

/** A second `except`, or the `finally` behind one. */
function follows(lines: readonly LogicalLine[], line: LogicalLine): boolean {
  const before = lines.slice(0, lines.indexOf(line)).reverse();
  const beside = before.find((one) => one.indent <= line.indent);
  return beside?.indent === line.indent && /^(?:except|else)\b/.test(beside.text);
}

/** Does Enter at the end of this run it? A block ends with an empty line. */
export function ends(code: string): boolean {
  const found = state(code);
  if (found !== "open") return found === "complete";
  const last = code.slice(code.lastIndexOf("\n") + 1);
  return last.trim() === "" || (!code.includes("\n") && !code.startsWith("%%"));
}

/** Of the line behind this one. */
export function indentation(line: string): string {
  let depth = line.length - line.replace(/^ +/, "").length;
  const words = (line.split("#", 1)[0] ?? "").trim();
  if (words.endsWith(":")) depth += INDENT;
  else if (LEAVES.test(words)) depth -= INDENT;
  return " ".repeat(Math.max(0, depth));
}

/** Instructions, each as soon as it cannot go on any more. */
export async function* blocks(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  let code = "";
  for await (const line of lines) {
    const fresh = line.trim() !== "" && !line.startsWith("#") && !GOES_ON.test(line);
    if (fresh && saysSomething(code) && !code.startsWith("%%") && state(code) === "open") {
      yield code;
      code = "";
    }
    if (code !== "" || line.trim() !== "") code += line;
    if (saysSomething(code) && state(code) === "complete") {
      yield code;
      code = "";
    }
  }
  if (saysSomething(code)) yield code;
}

function saysSomething(code: string): boolean {
  return code.split("\n").some((line) => line.trim() !== "" && !line.startsWith("#"));
}

function lastLine(code: string): string {
  return code.split("\n").findLast((line) => line.trim() !== "") ?? "";
}
