/** How Python spells values: what this command line prints is to be the same, letter by letter. */

import { canonical, ExactNumber } from "../exactjson.js";
import { quotedText } from "../quoting.js";

/** Fields that are floats on the wire, and have a point in them also when they are whole. */
const FLOATS = new Set(["cpus", "idle_seconds", "requests_per_second", "awake_seconds", "timeout_seconds"]);
/** What is below these is somebody else's, and is spelled as it came. */
const FOREIGN = new Set(["data", "detail", "details", "displays", "env", "metadata", "tags"]);

/** str() of what came as JSON; `field` is where it stood. */
export function spelled(value: unknown, field = ""): string {
  return typeof value === "string" ? value : inner(value, field);
}

function inner(value: unknown, field: string): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return FLOATS.has(field) ? float(value) : number(value);
  if (typeof value === "string") return quotedText(value);
  if (value instanceof ExactNumber) return canonical(value);
  if (Array.isArray(value)) return `[${value.map((one) => inner(one, "")).join(", ")}]`;
  const pairs = Object.entries(value as Record<string, unknown>);
  return `{${pairs.map(([name, one]) => `${quotedText(name)}: ${inner(one, "")}`).join(", ")}}`;
}

function number(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? String(value) : float(value);
}

/** repr() of a float. */
export function float(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const size = Math.abs(value);
  if (size >= 1e16 || (size < 1e-4 && size > 0)) {
    return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  }
  const text = Object.is(value, -0) ? "-0" : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** json.dumps: in one line, or with each level one space further in. */
export function dumps(value: unknown, indent = 0): string {
  return json(value, "", indent, "\n", false);
}

function json(value: unknown, field: string, indent: number, newline: string, foreign: boolean): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return ascii(value);
  if (typeof value === "number") return FLOATS.has(field) && !foreign ? jsonFloat(value) : jsonNumber(value);
  if (typeof value === "boolean") return value ? "true" : "false";
  if (value instanceof ExactNumber) return canonical(value);
  const below = indent ? newline + " ".repeat(indent) : "";
  const [open, close, parts] = Array.isArray(value)
    ? ["[", "]", value.map((one) => json(one, "", indent, below, foreign))]
    : ["{", "}", Object.entries(value).filter(([, one]) => one !== undefined).map(
        ([name, one]) => `${ascii(name)}: ${json(one, name, indent, below, foreign || FOREIGN.has(name))}`,
      )];
  if (parts.length === 0) return open + close;
  return indent ? `${open}${below}${parts.join(`,${below}`)}${newline}${close}` : `${open}${parts.join(", ")}${close}`;
}

function jsonNumber(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? String(value) : jsonFloat(value);
}

function jsonFloat(value: number): string {
  const text = float(value);
  return text === "nan" ? "NaN" : text.replace("inf", "Infinity");
}

function ascii(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) =>
    unit === "\u007f" ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
