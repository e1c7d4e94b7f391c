/** Functions of this program that code in a machine may call: what they may be, and their answers. */

import type { Answer } from "./generated/api.js";
import { InvalidInput } from "./generated/errors.js";
import { isObject } from "./decoding.js";
import { quoted } from "./quoting.js";
import { say } from "./sentences.js";

/** It gets the arguments as the code gave them; those with names come last, in one object. What it returns, or what its promise resolves to, must be JSON. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever parameters it has, the code in the machine must know
export type HostFunction = (...args: any[]) => unknown;
export type Functions = Readonly<Record<string, HostFunction>>;

const CALL_BYTES_MAX = 1024 * 1024; // of arguments, or of an answer, as JSON
const ERROR_CHARACTERS_MAX = 4000; // of what a function threw
const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda " +
    "nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

/** By the names that the code has for them; InvalidInput before anything is run. */
export function checked(functions: unknown): ReadonlyMap<string, HostFunction> {
  const found = new Map<string, HostFunction>();
  if (functions === undefined || functions === null) return found;
  if (!isObject(functions)) throw new InvalidInput(say("bad_functions", { text: quoted(functions) }));
  for (const [name, value] of Object.entries(functions)) {
    if (!/^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(name) || KEYWORDS.has(name)) throw new InvalidInput(say("bad_function_name", { text: quoted(name) }));
    if (typeof value !== "function") throw new InvalidInput(say("bad_functions", { text: quoted(name) }));
    found.set(name, value as HostFunction);
  }
  return found;
}

/** An error of the call, where it is not what the machine could be given. */
export function returned(name: string, value: unknown): Answer {
  let text: string;
  try {
    text = JSON.stringify(value ?? null, sendable);
  } catch (error) {
    return refused(name, `it is not JSON (${messageOf(error)})`);
  }
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > CALL_BYTES_MAX) return refused(name, say("answer_too_large", { most: CALL_BYTES_MAX, bytes }));
  const plain: unknown = JSON.parse(text); // as it is now: the program may change the object before it is sent
  return plain === null ? {} : { value: plain };
}

/** JSON.stringify would make null of some, and leave others out. */
function sendable(this: unknown, _name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value} cannot be written`);
  if (typeof value === "function" || typeof value === "symbol") throw new TypeError(`a ${typeof value} cannot be written`);
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) throw new TypeError(`a ${value.constructor.name} cannot be written`);
  return value;
}

export function thrown(error: unknown): Answer {
  const name = error instanceof Error ? error.name : typeof error;
  return failed(`${name}: ${messageOf(error)}`);
}

export function refused(name: string, why: string): Answer {
  return failed(say("answer_not_sendable", { function: name, why }));
}

/** Half of a surrogate pair is spelled out: it cannot be sent as it is. */
function failed(text: string): Answer {
  return { error: text.slice(0, ERROR_CHARACTERS_MAX).replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`) };
}

function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return "its message cannot be shown"; // of the user's own making
  }
}
