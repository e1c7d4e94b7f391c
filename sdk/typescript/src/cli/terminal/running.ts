/** One instruction of the person's at the prompt, and what Ctrl-C means while it runs: interrupt it, insist, stop waiting. */

import { randomBytes } from "node:crypto";

import { LONGER } from "../failures.js";
import type { Keys } from "./keys.js";
import { Once, pause } from "./once.js";
import type { Session } from "./session.js";

const HINT_MS = 800; // most code ends sooner, and needs no word about it
const HINT = "interrupted, and it still runs; Ctrl-C again kills it, with the machine's variables";
const INSISTED = "it is being killed; Ctrl-C again stops waiting for that";
const AWAY = "it is interrupted as soon as the server is there again; Ctrl-C again stops waiting for it";
const REFUSED = "Ctrl-C again stops waiting for it";

export class Running {
  private readonly key = randomBytes(16).toString("hex");
  private readonly left = new Once<undefined>();
  private number: number | undefined;
  private presses = 0;
  private told: string | undefined; // what the next one means
  private hints = 0; // the last of them is the one that counts

  constructor(private readonly session: Session, private readonly keys: Keys) {}

  async run(code: string, timeout_seconds: number | undefined): Promise<void> {
    await this.keys.mean(() => { this.pressed(); }, async () => {
      const work = this.session.run(code, timeout_seconds, this.key, (number) => { this.accepted(number); });
      try {
        const ended = await Promise.race([work, this.left.promise]);
        if (ended?.["end"] === "timed_out") this.session.screen.say(LONGER);
        if (ended === undefined) this.tellThatItGoesOn(work);
      } finally {
        this.hints += 1;
      }
    });
  }

  private tellThatItGoesOn(work: Promise<unknown>): void {
    work.catch(() => undefined); // whoever it failed for has left
    const known = this.number === undefined ? "what was typed may not have been heard" : `instruction ${String(this.number)} goes on`;
    this.session.screen.say(`no longer waited for: ${known}`);
  }

  private accepted(number: number): void {
    this.number = number;
    if (this.presses > 0) this.interrupt(number);
  }

  /** What a key means is said before: keys that are pressed faster than that mean nothing more. */
  private pressed(): void {
    if (this.presses > 0 && this.number !== undefined && this.told === undefined) return;
    this.presses += 1;
    if (this.number === undefined) {
      if (this.presses < 2) return;
      this.session.interruptWhenAccepted(this.key);
      this.left.give(undefined);
    } else if (this.presses === 1 || this.told === HINT) this.interrupt(this.number);
    else this.left.give(undefined);
  }

  /** The first is Python's own interrupt. The second insists. */
  private interrupt(number: number): void {
    const next = this.told === HINT ? INSISTED : HINT;
    this.told = undefined;
    void this.tell(this.session.interrupt(number), next, ++this.hints);
  }

  /** What comes next, to whoever still waits. */
  private async tell(sent: Promise<boolean>, hint: string, turn: number): Promise<void> {
    const say = (text: string): void => {
      if (turn !== this.hints) return;
      this.told = text;
      this.session.screen.say(text);
    };
    if ((await Promise.race([sent, pause(HINT_MS).then(() => "late" as const)])) === "late") say(AWAY);
    const heard = await sent;
    await pause(HINT_MS);
    say(heard ? hint : REFUSED);
  }
}
