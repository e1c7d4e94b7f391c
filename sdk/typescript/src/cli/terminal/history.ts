/** What was typed at prompts, one file for each server: JSON strings, one a line, for nobody else to read. The Python command line has the same file. */

import { createHash } from "node:crypto";
import { appendFileSync, chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { makeFolder } from "../../node/folders.js";
import { dumps } from "../spelling.js";
import { stateFolder } from "./folders.js";

const ENTRIES_MAX = 5_000;
const FILE_BYTES_MAX = 4 * 1024 * 1024;
const ENTRY_BYTES_MAX = 64 * 1024; // what is longer was pasted, and lies elsewhere

export function historyPath(baseUrl: string): string {
  const place = baseUrl.split("://").at(-1) ?? "";
  const name = place.toLowerCase().replace(/[^a-z0-9.]+/g, "-").slice(0, 60);
  const hash = createHash("sha256").update(baseUrl).digest("hex").slice(0, 8);
  return join(stateFolder(), "history", `${name}-${hash}.jsonl`);
}

/** Where it cannot be kept, it is there for as long as the prompt is. */
export class History {
  /** the oldest first */
  readonly entries: string[];

  constructor(private readonly path: string) {
    this.entries = read(path);
  }

  add(text: string): void {
    if (text === this.entries.at(-1)) return;
    this.entries.push(text);
    const line = `${dumps(text)}\n`;
    if (line.length > ENTRY_BYTES_MAX) return;
    try {
      makeFolder(dirname(this.path), 0o700);
      appendFileSync(this.path, line, { mode: 0o600 }); // one write to the end: others may write there, too
      chmodSync(this.path, 0o600);
    } catch {
      // A full disk is no reason not to work on.
    }
  }
}

function read(path: string): string[] {
  try {
    const content = readFileSync(path);
    const found = content.subarray(-FILE_BYTES_MAX).toString("utf8").split("\n").flatMap(textOf);
    if (found.length <= ENTRIES_MAX && content.length <= FILE_BYTES_MAX) return found;
    const kept = found.slice(-ENTRIES_MAX / 2);
    writeFileSync(`${path}.${String(process.pid)}`, kept.map((text) => `${dumps(text)}\n`).join(""), { mode: 0o600 });
    renameSync(`${path}.${String(process.pid)}`, path);
    return kept;
  } catch {
    return [];
  }
}

/** None: half a line, or somebody else's. */
function textOf(line: string): string[] {
  try {
    const found: unknown = JSON.parse(line);
    return typeof found === "string" ? [found] : [];
  } catch {
    return [];
  }
}
