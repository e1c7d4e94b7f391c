/** Calls that code in a machine makes to functions of this program, and their way back. */

import { answering } from "./answering.js";
import type { Door } from "./door.js";
import { refused, returned, thrown, type HostFunction } from "./functions.js";
import type { Answer, Answered } from "./generated/api.js";
import { Forbidden, Refused, Unauthenticated, WrongState } from "./generated/errors.js";
import type { Call } from "./results.js";

/** Of one instruction. A function is called once for each call: an answer that could not be sent is kept, and sent when there is a next time. */
export class Answers {
  readonly #kept = new Map<number, Answer>(); // by the call's number

  constructor(
    private readonly door: Door,
    private readonly machine: string,
    private readonly instruction: number,
  ) {}

  /** Runs the function here and tells the machine. What it throws is raised in the machine. */
  async answer(asked: Call, act: HostFunction, signal: AbortSignal): Promise<void> {
    const found = this.#kept.get(asked.number) ?? (await this.#find(asked, act));
    this.#kept.set(asked.number, found);
    try {
      await this.#tell(asked, found, signal);
    } catch (error) {
      if (!(error instanceof Refused) || error instanceof Unauthenticated || error instanceof Forbidden) throw error; // no other answer would be taken either
      const instead = refused(asked.name, error.message);
      this.#kept.set(asked.number, instead);
      await this.#tell(asked, instead, signal);
    }
    this.#kept.delete(asked.number);
  }

  async #find(asked: Call, act: HostFunction): Promise<Answer> {
    const args = Object.keys(asked.kwargs).length > 0 ? [...asked.args, asked.kwargs] : asked.args;
    try {
      return returned(asked.name, await answering(this.door.base_url, this.machine, this.instruction, async () => await act(...(args as unknown[]))));
    } catch (error) {
      return thrown(error);
    }
  }

  async #tell(asked: Call, answer: Answer, signal: AbortSignal): Promise<void> {
    const path = `/machine/${this.machine}/exec/${this.instruction}/calls/${asked.number}`;
    try {
      // It is answered once, whoever answers first: asking again is safe.
      await this.door.post<Answered>("Answered", path, answer, { again: true, signal });
    } catch (error) {
      if (error instanceof WrongState) return; // answered already: by another client, by our own cut request, or it is no longer waited for
      if (error instanceof Refused && error.httpStatus === 404) return; // the instruction has ended meanwhile
      throw error;
    }
  }
}
