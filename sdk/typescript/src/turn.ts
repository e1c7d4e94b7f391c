/** Waiting for something that others bring about. */

import { after, checkSignal } from "./pauses.js";

export class Turn {
  readonly #waiting = new Set<() => void>();

  /** For a notice, or so long. */
  async wait(seconds: number, signal: AbortSignal): Promise<void> {
    checkSignal(signal);
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", finish);
        this.#waiting.delete(finish);
        resolve();
      };
      const timer = after(seconds, finish);
      signal.addEventListener("abort", finish, { once: true });
      this.#waiting.add(finish);
    });
    checkSignal(signal);
  }

  notifyAll(): void {
    for (const finish of [...this.#waiting]) finish();
  }
}
