/** Frames of a WebSocket that have come and were not asked for yet. Bounded: whoever fills it is told to wait, or is cut off. */

import { Cut } from "./failures.js";
import { after, checkSignal } from "./pauses.js";

const FRAMES_MAX = 1000;
const CHARACTERS_MAX = 32 * 1024 * 1024; // two frames of the longest kind

export class Inbox {
  #frames: string[] = [];
  #first = 0; // of those not taken yet
  #characters = 0;
  #end: Cut | null = null;
  #wake: (() => void) | null = null;

  get isFull(): boolean {
    return this.#frames.length - this.#first >= FRAMES_MAX || this.#characters >= CHARACTERS_MAX;
  }

  get isEnded(): boolean {
    return this.#end !== null;
  }

  put(frame: string): void {
    this.#frames.push(frame);
    this.#characters += frame.length;
    this.#wake?.();
  }

  /** No more will come; what has come can still be taken. */
  end(why: Cut): void {
    this.#end ??= why;
    this.#wake?.();
  }

  /** null when nothing comes in time. One at a time waits here. */
  async take(seconds: number, signal: AbortSignal): Promise<string | null> {
    if (this.#first === this.#frames.length && this.#end === null) await this.#wait(seconds, signal);
    const frame = this.#frames[this.#first];
    if (frame !== undefined) {
      this.#drop(frame);
      return frame;
    }
    if (this.#end !== null) throw this.#end;
    return null;
  }

  #drop(frame: string): void {
    this.#characters -= frame.length;
    this.#frames[this.#first++] = "";
    if (this.#first === this.#frames.length || this.#first > FRAMES_MAX) {
      this.#frames = this.#frames.slice(this.#first);
      this.#first = 0;
    }
  }

  async #wait(seconds: number, signal: AbortSignal): Promise<void> {
    checkSignal(signal);
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", finish);
        this.#wake = null;
        resolve();
      };
      const timer = after(seconds, finish);
      signal.addEventListener("abort", finish, { once: true });
      this.#wake = finish;
    });
    checkSignal(signal);
  }
}
