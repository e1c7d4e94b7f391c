/** One prompt's talk with one machine: what it submits, what it hears, through every cut. */

import { EverforgeError } from "../../error.js";
import { MachineNotFound, Uncertain, Unreachable } from "../../generated/errors.js";
import type { Listener, Machine, Repl } from "../../node.js";
import { Once, pause } from "./once.js";
import type { Screen } from "./screen.js";
import type { AnyEntry } from "./transcript.js";

const AGAIN_MS = 3000; // between tries, once the SDK has given up
const QUIET_MS = 800; // nobody wants to read of a wake that is over before that
const WAKING = "waking the machine...";
const WAITS: Readonly<Record<string, string>> = { creating: "the machine is being made...", hibernating: WAKING, asleep: WAKING, waking: WAKING };

/** What others do on the machine is heard, too, and shown on demand. Background output belongs to everybody. */
export class Session {
  /** no use in going on */
  readonly failed = new Once<EverforgeError>();
  private readonly submitted = new Map<string, Once<AnyEntry>>(); // ends, by key until their acceptance is seen
  private readonly ours = new Map<number, Once<AnyEntry>>(); // and then by number
  private readonly unwanted = new Set<string>(); // keys of those that are to be interrupted as soon as they have a number
  private readonly listener: Listener;
  private heard = false; // something of what is waited for
  private closed = false;

  constructor(readonly machine: Machine, private readonly repl: Repl, readonly screen: Screen, private readonly others: boolean) {
    this.listener = repl.listen();
    void this.listen();
  }

  close(): void {
    this.closed = true;
    this.listener.close();
  }

  /** It may be so since one last looked. */
  private isClosed(): boolean {
    return this.closed;
  }

  private isHeard(): boolean {
    return this.heard;
  }

  // --- hearing ---------------------------------------------------------------------------------------------------------------------------

  private async listen(): Promise<void> {
    while (!this.closed) {
      try {
        this.take((await this.listener.next()) as unknown as AnyEntry);
      } catch (error) {
        if (this.isClosed()) return;
        if (error instanceof Unreachable || error instanceof Uncertain) await pause(AGAIN_MS); // it may take its time; whoever is tired of waiting leaves
        else {
          this.failed.give(error as EverforgeError);
          return;
        }
      }
    }
  }

  private take(entry: AnyEntry): void {
    const key = entry["key"] as string;
    const waiting = entry.type === "accepted" ? this.submitted.get(key) : undefined;
    const number = entry.instruction ?? -1;
    if (waiting !== undefined) {
      this.submitted.delete(key);
      this.ours.set(number, waiting);
      if (this.unwanted.has(key)) void this.interrupt(number);
      return;
    }
    const end = this.ours.get(number);
    const background = entry.instruction == null && (entry.type === "output" || entry.type === "displayed");
    if (entry.type === "moved" || entry.type === "lost") this.moved(entry);
    else if (end !== undefined || this.others || background) this.screen.show(entry);
    if (end === undefined) return;
    this.heard = true;
    if (entry.type === "ended") {
      this.ours.delete(number);
      end.give(entry);
    }
  }

  private moved(entry: AnyEntry): void {
    const back = entry["event"] === "rollback_started" || entry["event"] === "reset_started";
    if (entry.type === "lost" || back) this.screen.show(entry);
    else if (entry["residence"] === "awake") this.screen.waitFor(undefined);
  }

  // --- running ---------------------------------------------------------------------------------------------------------------------------

  /** Its end. Whoever stops waiting for it has not stopped it: the instruction goes on, and is shown. */
  async run(code: string, timeout_seconds: number | undefined, key: string, accepted: (number: number) => void): Promise<AnyEntry> {
    const ended = new Once<AnyEntry>();
    this.submitted.set(key, ended);
    this.heard = false;
    accepted(await this.first(this.repl.submit(code, { timeout_seconds, key })));
    const waker = setTimeout(() => void this.tellIfWaking(), QUIET_MS);
    try {
      return await this.first(ended.promise);
    } finally {
      clearTimeout(waker);
      this.screen.waitFor(undefined);
    }
  }

  /** What is wanted, unless there is no use in waiting for it any more. */
  private async first<T>(wanted: Promise<T>): Promise<T> {
    const failed = this.failed.promise.then((error) => Promise.reject(error));
    return Promise.race([wanted, failed]);
  }

  private async tellIfWaking(): Promise<void> {
    if (this.heard) return;
    try {
      const { state } = await this.machine.info();
      const what = WAITS[state];
      if (what !== undefined && !this.isHeard()) this.screen.waitFor(what);
    } catch (error) {
      if (!(error instanceof EverforgeError)) throw error; // whoever waits hears of it
    }
  }

  // --- interrupting ----------------------------------------------------------------------------------------------------------------------

  interruptWhenAccepted(key: string): void {
    this.unwanted.add(key);
  }

  /** In its own time: while the server is away it is waited for. Was it heard? Once more for the same instruction insists. */
  async interrupt(number: number): Promise<boolean> {
    while (!this.closed) {
      try {
        await this.machine.instruction(number).interrupt();
        return true;
      } catch (error) {
        if (error instanceof Unreachable) await pause(AGAIN_MS); // nobody has heard it
        else if (error instanceof Uncertain) return true; // not again: for one who has heard it, that would be to insist
        else if (error instanceof EverforgeError) {
          this.screen.say(`not interrupted: ${error.message}`);
          return false;
        } else throw error;
      }
    }
    return false;
  }
}

export function gone(error: unknown): boolean {
  return error instanceof MachineNotFound;
}
