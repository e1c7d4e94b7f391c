/** Somebody who wants certain entries of a machine's WebSocket. */

import type { Entry } from "./generated/entries.js";
import { ClientError, StillRunning } from "./generated/errors.js";
import { Deadline } from "./pauses.js";
import { say } from "./sentences.js";
import type { Entries, TapeReader } from "./tape.js";

export const INBOX_ENTRIES_MAX = 10_000; // for a listener that does not listen; it reads the rest from the tape, where it is kept
const INBOX_CHARACTERS_MAX = 64 * 1024 * 1024;

/** What a listener needs of its channel. */
export interface Channelled {
  until(ready: () => boolean, deadline: Deadline, signal: AbortSignal): Promise<boolean>;
  forget(listener: Listener): void;
  reader(after: number, deadline: Deadline): TapeReader;
  joined(signal: AbortSignal | undefined): AbortSignal;
  /** The caller's and the client's, which outlive the connection. */
  outer(signal: AbortSignal | undefined): AbortSignal;
  readonly cursor: number | null;
}

/** The repl was closed, here and by its owner. What is on the tape is there all the same. */
export class ChannelClosed extends ClientError {}

export class Listener implements Entries {
  deadline: Deadline;
  #inbox: Entry[] = [];
  #first = 0;
  #characters = 0;
  #reader: TapeReader | null = null;
  #behind: number | null = null; // the last entry before the inbox was full
  #joined: { given: AbortSignal | undefined; signal: AbortSignal } | null = null;

  constructor(
    private readonly channel: Channelled,
    private readonly wants: (entry: Entry) => boolean,
    wait_seconds?: number,
    /** May it go on with the tape when the repl is closed? */
    private readonly outlives = false,
  ) {
    this.deadline = new Deadline(wait_seconds);
  }

  /** `size` is about how much memory it takes. */
  offer(entry: Entry, size: number): void {
    if (this.#behind !== null || !this.wants(entry)) return;
    const last = this.#inbox[this.#inbox.length - 1];
    if (last !== undefined && (this.#inbox.length - this.#first >= INBOX_ENTRIES_MAX || this.#characters >= INBOX_CHARACTERS_MAX)) {
      this.#behind = last.cursor;
      return;
    }
    this.#inbox.push(entry);
    this.#characters += size;
  }

  async next(signal?: AbortSignal): Promise<Entry> {
    if (this.#isEmpty && this.#behind === null) await this.#wait(signal);
    if (this.#isEmpty && this.#behind !== null) return await this.#nextOnTape(this.#behind, signal);
    return this.#take();
  }

  async #wait(given: AbortSignal | undefined): Promise<void> {
    if (this.#joined?.given !== given || this.#joined?.signal.aborted !== false) this.#joined = { given, signal: this.channel.joined(given) };
    try {
      if (!(await this.channel.until(() => !this.#isEmpty, this.deadline, this.#joined.signal))) throw new StillRunning(say("nothing_came"));
    } catch (error) {
      if (!(error instanceof ChannelClosed) || !this.outlives || this.channel.cursor === null) throw error;
      this.#behind = this.channel.cursor;
    }
  }

  get #isEmpty(): boolean {
    return this.#first === this.#inbox.length;
  }

  #take(): Entry {
    const entry = this.#inbox[this.#first++];
    if (entry === undefined) throw new StillRunning(say("nothing_came"));
    if (this.#isEmpty && this.#behind === null) {
      this.#inbox = [];
      this.#first = this.#characters = 0;
    }
    return entry;
  }

  async #nextOnTape(after: number, signal: AbortSignal | undefined): Promise<Entry> {
    this.#inbox = [];
    this.#first = 0;
    this.#reader ??= this.channel.reader(after, this.deadline);
    for (;;) {
      const entry = await this.#reader.next(this.channel.outer(signal));
      if (this.wants(entry)) return entry;
    }
  }

  finish(): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  close(): void {
    this.channel.forget(this);
    this.#reader?.close();
  }
}
