/** A program at the prompt: what comes in is run, what comes out is printed, and the exit code says whether anything raised. */

import type { Display, Machine, Repl, Result } from "../../node.js";
import { failureText } from "../../results.js";
import { EXITS } from "../commands.js";
import { connected, suggesting } from "../connection.js";
import { LONGER } from "../failures.js";
import { interrupting } from "../machine/interrupting.js";
import { flush, put, say } from "../output.js";
import { lines } from "../stdin.js";
import { blocks } from "./blocks.js";
import { pictureOf, Pictures } from "./pictures.js";
import { shownAs } from "./transcript.js";

export interface Fed {
  /** undefined: a new machine */
  name: string | undefined;
  timeout_seconds: number | undefined;
  tags: Record<string, string> | undefined;
}

export async function feed({ name, timeout_seconds, tags }: Fed): Promise<number> {
  return connected(async (server) => {
    const machine = name === undefined ? await server.create({ tags }) : server.machine(name);
    if (name === undefined) note(machine.name);
    else await suggesting(name, () => machine.info());
    return new Feed(machine, timeout_seconds).run();
  }, { on_connection: (is) => { note(is ? "connected again" : "connection lost, reconnecting..."); } });
}

class Feed {
  private readonly pictures: Pictures;
  private shown = 0;

  constructor(private readonly machine: Machine, private readonly timeout_seconds: number | undefined) {
    this.pictures = new Pictures(machine.name, "none");
  }

  /** Stops at the first one that raises, as a script does. */
  async run(): Promise<number> {
    const repl = this.machine.repl();
    try {
      for await (const code of blocks(lines())) {
        const result = await this.give(repl, code);
        this.end(result);
        if (result.end !== "value") return result.end === "interrupted" ? EXITS.interrupted : EXITS.raised;
      }
      return EXITS.done;
    } finally {
      await repl.close();
    }
  }

  /** This one alone is interrupted by Ctrl-C: others may have given the machine more. */
  private async give(repl: Repl, code: string): Promise<Result> {
    const { timeout_seconds } = this;
    return interrupting(this.machine, () => repl.exec(code, { timeout_seconds }), (instruction) =>
      instruction.result({
        on_stdout: (line) => { out(line.text + line.end); },
        on_stderr: (line) => { say(line.text, line.end); },
        on_display: (display) => { this.show(display); },
      }),
    );
  }

  private show(display: Display): void {
    const picture = pictureOf(display.data);
    if (picture === undefined) out(`${shownAs(display.data)}\n`);
    else say(this.pictures.shown(picture, ++this.shown), "");
  }

  private end(result: Result): void {
    const ok = result.end === "value";
    if (ok && typeof result.value === "string") out(`${result.value}\n`);
    else if (!ok) say(failureText(result.end, result.error, result.traceback) || result.end);
    if (result.note) note(result.note);
    if (result.end === "timed_out") note(LONGER);
  }
}

function out(text: string): void {
  put(text);
  flush();
}

function note(text: string): void {
  say(`everforge: ${text}`);
}
