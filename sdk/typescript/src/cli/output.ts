/** Standard output and standard error. Written at once and in order; a full disk or a reader who has gone is nobody's mistake, and has an error of its own. */

import { writeSync } from "node:fs";
import { isatty } from "node:tty";

const STDOUT = 1;
const STDERR = 2;
const HELD_CHARACTERS_MAX = 64 * 1024;
const AGAIN_MS = 5;
const HALVES = /\p{Cs}/gu; // of letters that take two

/** The answer could not be written. */
export class NotWritten extends Error {
  constructor(override readonly cause: NodeJS.ErrnoException) {
    super(cause.message);
  }
}

export const onTerminal = { stdin: isatty(0), stdout: isatty(STDOUT), stderr: isatty(STDERR) };

/** Are there colours? */
export function coloured(): boolean {
  return onTerminal.stdout && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

let held = "";

/** A line of the answer. */
export function print(line: string): void {
  put(`${line}\n`);
}

/** Kept back until there is more of it, or somebody waits: `flush`. */
export function put(text: string): void {
  held += text;
  if (onTerminal.stdout || held.length > HELD_CHARACTERS_MAX) flush();
}

/** At once, for somebody who watches. */
export function putNow(text: string): void {
  put(text);
  flush();
}

export function putBytes(data: Uint8Array): void {
  flush();
  answer(data);
}

export function flush(): void {
  const text = held;
  held = "";
  if (text !== "") answer(encoded(text));
}

/** On stderr, to whoever still listens. */
export function say(text: string, end = "\n"): void {
  try {
    writeAll(STDERR, encoded(text + end));
  } catch {
    // Nobody does.
  }
}

/** What a machine's code prints may be what no encoding has: it is shown escaped, and is no reason to end. */
export function encoded(text: string): Uint8Array {
  return Buffer.from(text.replace(HALVES, (half) => `\\u${half.charCodeAt(0).toString(16)}`), "utf8");
}

function answer(data: Uint8Array): void {
  try {
    writeAll(STDOUT, data);
  } catch (error) {
    throw new NotWritten(error as NodeJS.ErrnoException);
  }
}

/** All of it, also where somebody who shares the pipe has made it one that does not wait. `from` is a place in a file. */
export function writeAll(handle: number, data: Uint8Array, from: number | null = null): void {
  let at = 0;
  while (at < data.length) {
    try {
      at += writeSync(handle, data, at, data.length - at, from === null ? null : from + at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
    }
  }
}
