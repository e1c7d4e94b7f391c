/** A machine's tape: pages of what is there, and a reader that follows it through every cut. */

import { entry as checked, parse } from "./decoding.js";
import { SILENCE_SECONDS, type Door } from "./door.js";
import { EverforgeError } from "./error.js";
import { Cut } from "./failures.js";
import type { Tape } from "./generated/api.js";
import type { Entry } from "./generated/entries.js";
import { MachineNotFound, ProtocolError, StillRunning } from "./generated/errors.js";
import { Deadline, Patience, checkSignal, sleep } from "./pauses.js";
import type { Answer } from "./platform.js";
import { behind } from "./results.js";
import { say } from "./sentences.js";

export const START = -1; // "after nothing": the first entry of a tape has position 0
export const RECONNECT_SECONDS = 120; // how long a server may be gone before a reader gives up
const LINE_CHARACTERS_MAX = 64 * 1024 * 1024; // an entry is far shorter
const FINISH_SECONDS = 2; // a server that does not end the stream of an ended instruction does not hold up its result
const NDJSON = { accept: "application/x-ndjson" };

export interface PagesOptions {
  instruction?: number | undefined;
  deadline?: Deadline;
  signal?: AbortSignal | undefined;
}

/** What is on the tape now. */
export async function* pages(door: Door, path: string, after: number, options: PagesOptions = {}): AsyncGenerator<Entry, void, undefined> {
  for (;;) {
    const page = await door.get<Tape>("Tape", path, { after, instruction: options.instruction }, options);
    for (const found of page.entries) {
      const known = checked(found);
      if (known !== null) yield known;
    }
    if (!page.more || page.position <= after) return;
    after = page.position;
  }
}

/** Where entries come from: the tape over HTTP, or the WebSocket of a Repl. */
export interface Entries {
  deadline: Deadline;
  next(signal: AbortSignal): Promise<Entry>;
  /** After the last entry of an instruction. */
  finish(): Promise<void>;
  /** Twice is fine. */
  close(): void;
}

/** Every entry behind `cursor`, once and in order; goes on from the last one after a cut or a restart of the server.
 *
 * With `instruction` only what belongs to it; the server ends that stream behind its end, and so the connection can be used again. */
export class TapeReader implements Entries {
  readonly #patience = new Patience(RECONNECT_SECONDS);
  readonly #lines = new Lines();
  #answer: Answer | null = null;

  constructor(
    private readonly door: Door,
    private readonly path: string,
    public cursor: number,
    public deadline: Deadline = new Deadline(null),
    private readonly instruction?: number,
  ) {}

  /** MachineNotFound when the machine is gone. */
  async next(signal: AbortSignal): Promise<Entry> {
    for (;;) {
      for (let line = this.#lines.take(); line !== null; line = this.#lines.take()) {
        const found = this.#take(line);
        if (found !== null) return found;
      }
      checkSignal(signal);
      if (this.deadline.passed) throw new StillRunning(say("nothing_came"));
      try {
        await this.#readOn(signal);
      } catch (error) {
        if (!(error instanceof EverforgeError) || !this.door.mayAskAgain(error, true)) throw error;
        await this.#pause(error, signal);
      }
    }
  }

  #take(line: string): Entry | null {
    if (line.trim() === "") return null; // only a sign of life
    const found = checked(parse(line));
    const fresh = found === null ? null : behind(found, this.cursor);
    if (fresh !== null) this.cursor = fresh.cursor;
    return fresh;
  }

  async #readOn(signal: AbortSignal): Promise<void> {
    const answer = this.#answer ?? (await this.#open(signal));
    const chunk = await this.door.cuts("GET", async () => {
      const found = await answer.chunk();
      if (found === null) throw new Cut("the server ended the stream");
      return found;
    });
    this.#patience.renew(); // a sign of life will do
    this.#lines.add(chunk);
  }

  async #open(signal: AbortSignal): Promise<Answer> {
    const url = this.door.url(this.path, { after: this.cursor, follow: true, instruction: this.instruction });
    const answer = await this.door.send("GET", url, NDJSON, null, this.deadline.within(SILENCE_SECONDS), signal);
    this.#answer = answer;
    this.#lines.clear();
    if (this.deadline.left !== null) answer.endAfter(this.deadline.left);
    this.door.tell(true);
    return answer;
  }

  /** Before the next connection. */
  async #pause(error: EverforgeError, signal: AbortSignal): Promise<void> {
    this.close();
    if (this.deadline.passed) return; // which has cut it
    this.door.tell(false);
    const pause = this.#patience.pause(error.retryAfterSeconds);
    if (pause === null) throw error;
    await sleep(this.deadline.within(pause), signal);
  }

  /** Reading on afterwards opens it again. */
  close(): void {
    this.#answer?.close();
    this.#answer = null;
  }

  async finish(): Promise<void> {
    this.#answer?.endAfter(FINISH_SECONDS);
    try {
      await this.#answer?.chunk();
    } catch {
      // What was wanted has come.
    }
    this.close();
  }
}

/** As an iterator, which ends with the machine. */
export async function* following(reader: TapeReader, signal: AbortSignal): AsyncGenerator<Entry, void, undefined> {
  try {
    for (;;) yield await reader.next(signal);
  } catch (error) {
    if (!(error instanceof MachineNotFound)) throw error; // it was deleted, and what it last had to say has been read
  } finally {
    reader.close();
  }
}

/** Bytes in, whole lines out. Looks at every character once, however the bytes are cut. */
export class Lines {
  #decoder = new TextDecoder();
  #rest: string[] = []; // the beginning of a line whose end has not come
  #size = 0;
  #text = ""; // whole lines, up to the last newline
  #at = 0;

  add(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf("\n");
    if (end < 0) {
      this.#keep(text);
      return;
    }
    this.#text = this.#text.slice(this.#at) + this.#rest.join("") + text.slice(0, end + 1);
    this.#at = 0;
    this.#rest = [];
    this.#size = 0;
    this.#keep(text.slice(end + 1));
  }

  #keep(text: string): void {
    if (text === "") return;
    this.#rest.push(text);
    this.#size += text.length;
    if (this.#size > LINE_CHARACTERS_MAX) throw new ProtocolError(say("entry_too_long", { bytes: LINE_CHARACTERS_MAX }));
  }

  /** Without its newline; null when no whole one is there. */
  take(): string | null {
    const end = this.#text.indexOf("\n", this.#at);
    if (end < 0) return null;
    const line = this.#text.slice(this.#at, end);
    this.#at = end + 1;
    return line;
  }

  clear(): void {
    this.#decoder = new TextDecoder();
    this.#rest = [];
    this.#size = 0;
    this.#text = "";
    this.#at = 0;
  }
}
