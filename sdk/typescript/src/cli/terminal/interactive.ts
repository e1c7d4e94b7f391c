/** A person at the prompt. */

import { EverforgeError } from "../../error.js";
import type { Everforge, Machine } from "../../node.js";
import { connected, suggesting } from "../connection.js";
import { meaning } from "../interruption.js";
import { commandOf, type Act } from "./commands.js";
import { History, historyPath } from "./history.js";
import { Keyboard } from "./keyboard.js";
import { Keys } from "./keys.js";
import { Once } from "./once.js";
import { Prompt, type Typed } from "./prompt.js";
import { Running } from "./running.js";
import { Screen } from "./screen.js";
import { gone, Session } from "./session.js";

export interface Talk {
  /** undefined: a new machine */
  name: string | undefined;
  timeout_seconds: number | undefined;
  tags: Record<string, string> | undefined;
  others: boolean;
}

export async function talk(wanted: Talk): Promise<void> {
  let screen: Screen | undefined; // there is none before there is a connection
  const on_connection = (is: boolean): void => screen?.say(is ? "connected again" : "connection lost, reconnecting...");
  await connected(async (server) => {
    const machine = await entered(server, wanted);
    const info = await suggesting(wanted.name, () => machine.info());
    const repl = machine.repl();
    screen = new Screen(info.name);
    try {
      await repl.open();
      screen.say(`${info.name} at ${server.base_url} (${info.state}). %help shows what there is; Ctrl-D leaves.`);
      const session = new Session(machine, repl, screen, wanted.others);
      await sitDown(session, server.base_url, wanted.timeout_seconds).finally(() => { session.close(); });
      screen.say(`${info.name} stays as it is: \`everforge repl ${info.name}\` goes on here.`);
    } finally {
      await repl.close();
    }
  }, { on_connection });
}

async function entered(server: Everforge, { name, tags }: Talk): Promise<Machine> {
  return name === undefined ? server.create({ tags }) : server.machine(name);
}

/** The terminal is ours until this ends. */
async function sitDown(session: Session, baseUrl: string, timeout_seconds: number | undefined): Promise<void> {
  const keys = new Keys();
  const keyboard = new Keyboard(() => { keys.hear(); }, () => { prompt.abandon(); });
  const prompt: Prompt = new Prompt(keyboard, new History(historyPath(baseUrl)), (code, cursor) => session.machine.complete(code, cursor));
  const signalled = (): void => {
    if (!prompt.isTyping) keys.hear(); // at the prompt it comes from elsewhere, and means nothing
  };
  try {
    await meaning(signalled, () => new Person(session, prompt, keys, timeout_seconds).work());
  } finally {
    keyboard.close();
  }
}

class Person {
  constructor(private readonly session: Session, private readonly prompt: Prompt, private readonly keys: Keys, private readonly timeout_seconds: number | undefined) {}

  async work(): Promise<void> {
    for (;;) {
      const typed = await this.typed();
      if (typed.what === "left") return;
      if (typed.what === "text" && typed.text.trim() !== "") await this.act(typed.text);
    }
  }

  /** What ends the session ends the prompt. */
  private async typed(): Promise<Typed> {
    const { screen, failed } = this.session;
    screen.beginPrompt((text) => { this.prompt.above(text); });
    this.keys.forget();
    try {
      const found = await Promise.race([this.prompt.read(), failed.promise]);
      if (!(found instanceof EverforgeError)) return found;
      this.prompt.abandon();
      throw found;
    } finally {
      screen.endPrompt();
    }
  }

  private async act(text: string): Promise<void> {
    const command = commandOf(text);
    try {
      if (command === undefined) await new Running(this.session, this.keys).run(text, this.timeout_seconds);
      else await this.shown(command.act, command.word);
    } catch (error) {
      if (!(error instanceof EverforgeError) || gone(error) || this.session.failed.given) throw error;
      this.session.screen.say(`everforge: ${error.message}`, "error");
    }
  }

  /** A command of the prompt's. Ctrl-C stops waiting for it. */
  private async shown(act: Act, word: string | undefined): Promise<void> {
    const left = new Once<undefined>();
    await this.keys.mean(() => { left.give(undefined); }, async () => {
      const work = act(this.session.machine, word);
      const said = await Promise.race([work, left.promise]);
      work.catch(() => undefined);
      if (said === undefined) this.session.screen.say("no longer waited for");
      else this.session.screen.say(said, "value");
    });
  }
}
