/** A whole server on the engine of tests (tests/kit/fakeserver.py), in a process of its own: ready in a second. */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

import { PACKAGE, PYTHON } from "./python.js";

const TESTS = join(PACKAGE, "..", "..", "tests");

/** Code that writes one line and goes on for ever, as this engine has it. */
export const FOR_EVER = "tell('begun')\nhang()";

export class FakeServer {
  private constructor(
    private readonly process: ChildProcessByStdio<Writable, Readable, null>,
    readonly url: string,
    readonly token: string,
  ) {}

  static async start(): Promise<FakeServer> {
    const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], PYTHONPATH: TESTS };
    const child = spawn(PYTHON, ["-m", "kit.fakeserver"], { env, stdio: ["pipe", "pipe", "ignore"] });
    for await (const line of createInterface({ input: child.stdout })) {
      const [word, url = "", token = ""] = line.split(" ");
      if (word === "ready") return new FakeServer(child, url, token);
    }
    throw new Error("the server did not become ready");
  }

  async stop(): Promise<void> {
    const gone = new Promise((done) => this.process.once("exit", done));
    this.process.stdin.end();
    await gone;
  }
}
