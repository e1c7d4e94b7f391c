/** The process that prints and remembers: `scribeprocess PATH IDENTITY PARENT`, with the lines on descriptor 3. It has the file locked. */

import { openSync } from "node:fs";
import { Socket } from "node:net";
import { createInterface } from "node:readline";

import { encoded, writeAll } from "../output.js";
import { isSystemError, reason } from "../systemerrors.js";
import { CursorFile, NotACursorFile } from "./cursorfile.js";
import type { Written } from "./scribe.js";

const STDOUT = 1;
const EIO = 5;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

const [path = "", identity = "", parent = ""] = process.argv.slice(2);
const pipe = new Socket({ fd: 3 });
pipe.on("error", () => process.exit(0));

function opened(): CursorFile {
  try {
    const file = new CursorFile(openSync(path, "r+"), path, identity);
    pipe.write(`${JSON.stringify({ cursor: file.cursor ?? null, open: file.open })}\n`);
    return file;
  } catch (error) {
    const said = error instanceof NotACursorFile ? error.message : isSystemError(error) ? `${path} cannot be used as a cursor file: ${reason(error)}` : String(error);
    pipe.end(`${JSON.stringify({ error: said })}\n`);
    throw error;
  }
}

/** Nothing more once whoever gave them has gone: the next one goes on behind what was remembered. */
function writeAllOf(lines: Written[], file: CursorFile): void {
  for (const { cursor, open, text } of lines) {
    if (process.ppid !== Number(parent)) process.exit(0);
    writeAll(STDOUT, encoded(text));
    file.remember(cursor, open);
  }
  pipe.write("+\n");
}

const file = opened();
try {
  for await (const line of createInterface({ input: pipe })) writeAllOf(JSON.parse(line) as Written[], file);
} catch (error) {
  process.exit(error instanceof SyntaxError ? 0 : -((error as NodeJS.ErrnoException).errno ?? -EIO)); // half a batch is none
}
