/** How long to go on trying, and how long to wait in between. */

import { waitSeconds } from "./inputs.js";

const FIRST_PAUSE_SECONDS = 0.05; // a server that is only just starting is there in a moment
const PAUSE_SECONDS_MAX = 5;
const GROWTH = 2;
const TIMER_MS_MAX = 2 ** 31 - 1; // a longer timer would fire at once

/** Seconds on a clock that nobody sets. */
export function now(): number {
  return performance.now() / 1000;
}

/** So many seconds from the first failure on, and pauses that grow meanwhile, each shortened by chance so that many clients do not come back at once. */
export class Patience {
  #until: number | null = null;
  #pause = FIRST_PAUSE_SECONDS;

  constructor(private readonly seconds: number) {}

  /** It went well: begin anew with the next failure. */
  renew(): void {
    this.#until = null;
    this.#pause = FIRST_PAUSE_SECONDS;
  }

  /** The time runs from now on, whenever the first failure comes. */
  start(): void {
    this.#until = now() + this.seconds;
  }

  /** Seconds to wait before the next try; null when there is to be none. */
  pause(atLeast = 0): number | null {
    this.#until ??= now() + this.seconds;
    const wanted = Math.max(atLeast, this.#pause * (0.5 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * GROWTH, PAUSE_SECONDS_MAX);
    return now() + wanted <= this.#until ? wanted : null;
  }
}

/** A point in time that may be never. */
export class Deadline {
  readonly #until: number | null;

  constructor(seconds: number | null | undefined) {
    const checked = waitSeconds(seconds);
    this.#until = checked === undefined ? null : now() + checked;
  }

  /** Seconds; null when it never comes. */
  get left(): number | null {
    return this.#until === null ? null : Math.max(0, this.#until - now());
  }

  get passed(): boolean {
    return this.#until !== null && now() >= this.#until;
  }

  /** At most these seconds, and less when it comes sooner; never quite nothing. */
  within(seconds: number): number {
    return this.#until === null ? seconds : Math.max(0.001, Math.min(seconds, this.#until - now()));
  }
}

export const FOR_EVER = new Deadline(null);

/** A timer of any length; a very long one only comes earlier. */
export function after(seconds: number, act: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(act, Math.min(Math.ceil(seconds * 1000), TIMER_MS_MAX));
}

/** What a signal was aborted with, as something that can be thrown. */
export function reasonOf(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new DOMException(String(reason), "AbortError");
}

export function checkSignal(signal: AbortSignal | null | undefined): void {
  if (signal?.aborted) throw reasonOf(signal);
}

/** Rejects as soon as the signal is aborted. */
export async function sleep(seconds: number, signal?: AbortSignal | null): Promise<void> {
  checkSignal(signal);
  await new Promise<void>((resolve, reject) => {
    const timer = after(seconds, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    const stop = (): void => {
      clearTimeout(timer);
      if (signal) reject(reasonOf(signal));
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}
