/** The replay server of the contract, in a process of its own as every SDK starts it. */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";

import type { Step } from "../steps/driver.js";
import { CONTRACT, PYTHON } from "./python.js";

const TRANSCRIPTS = join(CONTRACT, "transcripts");

export function transcripts(): string[] {
  return readdirSync(TRANSCRIPTS).map((name) => name.replace(/\.json$/, "")).sort();
}

export function stepsOf(name: string): Step[] {
  return (JSON.parse(readFileSync(join(TRANSCRIPTS, `${name}.json`), "utf8")) as { steps: Step[] }).steps;
}

export class Replay {
  private constructor(
    private readonly process: ChildProcessByStdio<Writable, Readable, null>,
    readonly url: string,
  ) {}

  static async start(): Promise<Replay> {
    const child = spawn(PYTHON, [join(CONTRACT, "replay.py")], { stdio: ["pipe", "pipe", "inherit"] });
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith("ready ")) return new Replay(child, line.slice("ready ".length).trim());
    }
    throw new Error("the replay server did not start");
  }

  variables(name: string): Record<string, string> {
    return { url: `${this.url}/${name}`, token: "replay.token" };
  }

  async problems(name: string): Promise<string[]> {
    return (JSON.parse(await this.#ask("GET", `verdict/${name}`)) as { problems: string[] }).problems;
  }

  /** From the beginning. */
  async again(name: string): Promise<void> {
    await this.#ask("POST", `again/${name}`);
  }

  /** On a connection of its own, that is closed at once: one that is kept would be in the way of the server's end. */
  async #ask(method: string, path: string): Promise<string> {
    const asked = request(`${this.url}/${path}`, { method, agent: false, timeout: 10_000 }).end();
    return await new Promise((resolve, reject) => {
      asked.on("error", reject).on("timeout", () => asked.destroy(new Error("the replay server does not answer")));
      asked.on("response", (response) => void text(response).then(resolve, reject));
    });
  }

  async stop(): Promise<void> {
    const gone = new Promise((done) => this.process.once("exit", done));
    this.process.stdin.end();
    await gone;
  }
}
