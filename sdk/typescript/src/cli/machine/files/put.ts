/** `everforge machine files put`. */

import { createWriteStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";

import { machineNamed } from "../../connection.js";
import { local } from "../../failures.js";
import type { Given } from "../../given.js";
import { atEnd } from "../../interruption.js";
import { print } from "../../output.js";
import { transfer } from "../../progress.js";
import { chunks, isClosed } from "../../stdin.js";
import { printJson, size } from "../../tables.js";
import { BadValue } from "../../wrongusage.js";

export async function put(given: Given): Promise<void> {
  const from = given.needed("local");
  const target = targetOf(from, given.text("path"));
  const done = await machineNamed(given.needed("name"), (machine) =>
    local(from, () =>
      withSource(from, (source) =>
        transfer(from, (progress) => {
          const isFolder = statSync(source, { throwIfNoEntry: false })?.isDirectory() ?? false;
          return isFolder ? machine.files.uploadFolder(source, target, { progress }) : machine.files.upload(source, target, { progress });
        }),
      ),
    ),
  );
  if (given.json) printJson(done);
  else print(`${done.path}: ${size(done.size_bytes)}`);
}

function targetOf(from: string, path: string | undefined): string {
  if (from === "-") {
    if (path === undefined || path.endsWith("/")) throw new BadValue("stdin has no name of its own: say which file it becomes", "PATH");
    return path;
  }
  const own = basename(resolve(from)); // of `.` and `..`, too, and without following links
  if (path === undefined) return own;
  return path.endsWith("/") ? path + own : path;
}

/** What comes on stdin goes to disk first: it is sent again when the connection is cut. */
async function withSource<T>(from: string, work: (source: string) => Promise<T>): Promise<T> {
  if (from !== "-") return work(from);
  if (isClosed()) throw new BadValue("stdin is closed", "LOCAL");
  const folder = mkdtempSync(join(tmpdir(), "everforge-"));
  const remove = (): void => { rmSync(folder, { recursive: true, force: true }); };
  const removed = atEnd(remove);
  try {
    const source = join(folder, "stdin");
    await pipeline(chunks(), createWriteStream(source, { mode: 0o600 }));
    return await work(source);
  } finally {
    removed();
    remove();
  }
}
