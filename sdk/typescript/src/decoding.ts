/** From a server's JSON to the types of the wire. Lenient on purpose: what a younger server adds is let pass, what is missing is an error. */

import { SHAPES } from "./generated/api.js";
import type { Entry } from "./generated/entries.js";
import { ProtocolError } from "./generated/errors.js";
import { say } from "./sentences.js";

export type Shape = keyof typeof SHAPES;
export type Fields = Record<string, unknown>;

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON object. */
export function parse(text: string): Fields {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw Object.assign(new ProtocolError(say("answer_not_json")), { cause: error });
  }
  if (!isObject(found)) throw new ProtocolError(say("answer_not_object"));
  return found;
}

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller says which type the shape stands for
export function decode<T>(shape: Shape, text: string): T {
  return read<T>(shape, parse(text));
}

/** The same object, once all that it must have is there. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- as above
export function read<T>(shape: Shape, value: unknown): T {
  check(shape, value);
  return value as T;
}

function check(shape: Shape, value: unknown): void {
  if (!isObject(value)) throw new ProtocolError(say("answer_not_object"));
  const { needs, inner }: { needs: readonly string[]; inner: Readonly<Record<string, string>> } = SHAPES[shape];
  const missing = needs.filter((name) => !(name in value));
  if (missing.length > 0) throw new ProtocolError(say("answer_lacks", { names: missing.join(", ") }));
  for (const [name, of] of Object.entries(inner)) checkInner(of, value[name]);
}

function checkInner(of: string, value: unknown): void {
  if (!of.endsWith("[]")) {
    if (value !== null && value !== undefined) check(of as Shape, value);
    return;
  }
  if (!Array.isArray(value)) throw new ProtocolError(say("answer_no_list"));
  for (const one of value) check(of.slice(0, -2) as Shape, one);
}

type Kind = "int" | "text" | "list" | "object";
const PLACE = { position: "int", cursor: "int" } as const;
/** What must be there to be worked with. */
const ENTRIES: ReadonlyMap<unknown, Readonly<Record<string, Kind>>> = new Map<string, Readonly<Record<string, Kind>>>([
  ["accepted", { ...PLACE, instruction: "int" }],
  ["output", { ...PLACE, stream: "text", lines: "list" }],
  ["displayed", { ...PLACE, data: "object" }],
  ["ended", { ...PLACE, instruction: "int", end: "text", runtime_ms: "int" }],
  ["called", { ...PLACE, instruction: "int", call: "int", function: "text" }],
  ["answered", { ...PLACE, instruction: "int", call: "int" }],
  ["moved", PLACE],
  ["lost", PLACE],
]);

/** An entry of a tape; null for a type that this client is too young for. */
export function entry(value: unknown): Entry | null {
  if (!isObject(value)) throw new ProtocolError(say("entry_bad", { entry: JSON.stringify(value).slice(0, 200) }));
  const needed = ENTRIES.get(value["type"]);
  if (needed === undefined) return null;
  for (const name in needed) {
    if (!isOfKind(value[name], needed[name])) throw new ProtocolError(say("entry_bad", { entry: JSON.stringify(value).slice(0, 200) }));
  }
  return value as unknown as Entry;
}

function isOfKind(value: unknown, kind: Kind | undefined): boolean {
  switch (kind) {
    case "int":
      return Number.isSafeInteger(value);
    case "text":
      return typeof value === "string";
    case "list":
      return Array.isArray(value);
    default:
      return isObject(value);
  }
}
