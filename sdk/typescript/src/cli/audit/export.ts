/** `everforge audit export`. */

import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { digestWith, GENESIS } from "../../chain.js";
import type { Everforge } from "../../node.js";
import { connected } from "../connection.js";
import { local } from "../failures.js";
import type { Given } from "../given.js";
import { encoded, print, putBytes, writeAll } from "../output.js";
import { dumps } from "../spelling.js";
import { printJson } from "../tables.js";
import { exactEntries, inOrder } from "./entries.js";

const CHUNK_BYTES = 64 * 1024;

export async function write(given: Given): Promise<void> {
  const file = given.needed("file");
  const toOutput = file === "-";
  const entries = await connected((server) =>
    local(file, async () => {
      const whole = (await server.audit.head()) !== null; // first: who is not let in leaves no empty file behind
      const output = toOutput ? nameless() : openSync(file, "wx");
      try {
        const count = await writeLog(server, output, whole);
        if (toOutput) copyOut(output);
        return count;
      } finally {
        closeSync(output);
      }
    }),
  );
  if (toOutput) return;
  if (given.json) printJson({ entries, file });
  else print(`${String(entries)} entries in ${file}`);
}

/** A file that nobody else sees, and that is gone with this process: what is printed is printed once it is whole. */
function nameless(): number {
  const folder = mkdtempSync(join(tmpdir(), "everforge-"));
  try {
    return openSync(join(folder, "log"), "wx+", 0o600);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function copyOut(handle: number): void {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let at = 0; ;) {
    const count = readSync(handle, chunk, 0, chunk.length, at);
    if (count === 0) return;
    putBytes(chunk.subarray(0, count));
    at += count;
  }
}

/** As much of the log as the token sees; how many entries. Begun again where old ones were let go meanwhile: some may lack. */
async function writeLog(server: Everforge, output: number, whole: boolean): Promise<number> {
  if (!whole) return writePart(server, output);
  for (;;) {
    const first = await server.audit.first();
    const count = await writeWhole(server, output);
    if (!(await server.audit.letGoSince(first))) return count;
    ftruncateSync(output);
  }
}

async function writeWhole(server: Everforge, output: number): Promise<number> {
  const head = await server.audit.head();
  let [count, at] = [0, 0];
  for await (const entry of exactEntries(server)) {
    if (head === null || entry.number > head.number) break; // what was written since is not part of it
    at = writeLine(output, at, inOrder(entry));
    count += 1;
  }
  writeLine(output, at, { head: { number: head?.number, hash: head?.hash } });
  return count;
}

async function writePart(server: Everforge, output: number): Promise<number> {
  let at = writeLine(output, 0, { part: { account: await server.whoami() } });
  let [entries, digest] = [0, GENESIS];
  for await (const entry of exactEntries(server)) {
    at = writeLine(output, at, inOrder(entry));
    entries += 1;
    digest = digestWith(digest, entry.hash);
  }
  writeLine(output, at, { end: { entries, digest } });
  return entries;
}

/** Where the next one begins. */
function writeLine(output: number, at: number, line: unknown): number {
  const data = encoded(`${dumps(line)}\n`);
  writeAll(output, data, at);
  return at + data.length;
}
