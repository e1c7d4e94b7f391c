/** Prints and remembers, so that nothing can fall between the two.
 *
 * Between a write and the note that it was done there is always a moment, and whoever reads the line may kill its writer right then. So the two are done by a
 * small process of their own: whoever kills this one does not kill that, which ends the line that it has in hand and then itself. */

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";

import { InvalidInput } from "../../generated/errors.js";
import { NotWritten } from "../output.js";
import { errorNumbered, isSystemError, reason } from "../systemerrors.js";

const LOCK_SECONDS = 15; // for one that was killed to finish what it had begun to write
const IN_USE = 99; // what `flock` ends with
const EIO = 5;
const END_MS = 10_000; // for the last lines to be taken by whoever reads them

/** A piece of output, where to go on behind it, and whether its line is unfinished. */
export interface Written {
  cursor: number;
  open: boolean;
  text: string;
}

export class Scribe {
  /** where the file says to go on; undefined in a new one */
  cursor: number | undefined;
  open = false;

  private constructor(private readonly child: ChildProcess, private readonly pipe: Duplex, private readonly answers: AsyncIterator<string>) {}

  /** The file is locked while the other process lives. Throws InvalidInput. */
  static async start(path: string, identity: string): Promise<Scribe> {
    make(path);
    const program = fileURLToPath(new URL("./scribeprocess.js", import.meta.url));
    const words = ["--no-fork", "--timeout", String(LOCK_SECONDS), "--conflict-exit-code", String(IN_USE), path];
    const child = spawn("flock", [...words, process.execPath, program, path, identity, String(process.pid)], {
      stdio: ["ignore", "inherit", "ignore", "pipe"],
      detached: true, // out of the reach of Ctrl-C, and of a kill of the whole group
    });
    const pipe = child.stdio[3] as Duplex;
    pipe.on("error", () => undefined); // it ended: its exit code says why
    const scribe = new Scribe(child, pipe, createInterface({ input: pipe })[Symbol.asyncIterator]());
    await scribe.hello(path);
    return scribe;
  }

  private async hello(path: string): Promise<void> {
    const missing = new Promise<never>((_, reject) => {
      this.child.on("error", () => { reject(new InvalidInput(`${path} cannot be locked: the program flock is missing on this computer`)); });
    });
    const first = await Promise.race([this.answers.next(), missing]);
    if (first.done) {
      const why = (await this.exit()) === IN_USE ? "is in use by another process: give each one a file of its own" : "cannot be used as a cursor file";
      throw new InvalidInput(`${path} ${why}`);
    }
    const said = JSON.parse(first.value) as { cursor: number | null; open: boolean; error?: string };
    if (said.error !== undefined) throw new InvalidInput(said.error);
    this.cursor = said.cursor ?? undefined;
    this.open = said.open;
  }

  /** Returns when they are written and remembered. */
  async write(lines: readonly Written[]): Promise<void> {
    this.pipe.write(`${JSON.stringify(lines)}\n`);
    if ((await this.answers.next()).done) throw new NotWritten(errorNumbered((await this.exit()) || EIO));
  }

  async close(): Promise<void> {
    this.pipe.end();
    const late = new Promise((done) => setTimeout(done, END_MS).unref());
    await Promise.race([this.exit(), late]);
  }

  private async exit(): Promise<number> {
    const { child } = this;
    if (child.exitCode === null && child.signalCode === null) await new Promise((done) => child.once("exit", done));
    return child.exitCode ?? EIO;
  }
}

/** For its owner alone, before anybody else makes it. */
function make(path: string): void {
  try {
    const handle = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK, 0o600);
    const isFile = fstatSync(handle).isFile();
    closeSync(handle);
    if (!isFile) throw new InvalidInput(`${path} is something else than a cursor file: take another name`);
  } catch (error) {
    throw isSystemError(error) ? new InvalidInput(`${path} cannot be written: ${reason(error)}`) : error;
  }
}
