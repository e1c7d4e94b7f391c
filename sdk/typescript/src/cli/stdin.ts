/** Standard input: all of it, or its first line. */

import { fstatSync, readFileSync, statSync } from "node:fs";

import { LocalTrouble } from "./failures.js";
import { isSystemError, reason } from "./systemerrors.js";

const LINE_CHARACTERS_MAX = 4096; // of what is asked for
const ACCESS_BITS = 3;
const READ_AND_WRITE = 2;

/** By whoever started us. Node then opens /dev/null in its place, and that for writing, too: who means to give nothing opens it for reading. */
export function isClosed(): boolean {
  try {
    const [, flags = ""] = /^flags:\s*([0-7]+)$/m.exec(readFileSync("/proc/self/fdinfo/0", "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & ACCESS_BITS) === READ_AND_WRITE && fstatSync(0).rdev === statSync("/dev/null").rdev;
  } catch {
    return false; // there is no telling here
  }
}

/** At most `most` bytes and one more, by which it shows that there were more. */
export async function readAll(most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let count = 0;
  for await (const part of chunks()) {
    parts.push(part);
    count += part.length;
    if (count > most) break;
  }
  return Buffer.concat(parts).subarray(0, most + 1);
}

export async function* chunks(): AsyncGenerator<Buffer> {
  try {
    for await (const part of process.stdin) yield part as Buffer;
  } catch (error) {
    throw isSystemError(error) ? new LocalTrouble(`stdin: ${reason(error)}`) : error;
  }
}

export async function firstLine(): Promise<string> {
  let found = "";
  const decoder = new TextDecoder();
  for await (const part of chunks()) {
    found += decoder.decode(part, { stream: true });
    if (found.includes("\n") || found.length >= LINE_CHARACTERS_MAX) break;
  }
  return (found.split("\n", 1)[0] ?? "").slice(0, LINE_CHARACTERS_MAX);
}

/** With their newlines, as they come. */
export async function* lines(): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8");
  let rest = "";
  for await (const part of chunks()) {
    const pieces = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = pieces.pop() ?? "";
    for (const piece of pieces) yield `${piece}\n`;
  }
  if (rest !== "") yield rest;
}
