/** Which machines wait for a function of this program that runs right now. Whoever waited for one of them in there would wait for ever. */

import { WrongState } from "./generated/errors.js";
import { platform, type Context } from "./platform.js";
import { say } from "./sentences.js";

type Places = ReadonlyMap<string, number>; // the number of the instruction, by server and machine
let context: Context<Places> | null = null;

function answered(): Context<Places> {
  return (context ??= platform().context<Places>());
}

function place(base_url: string, machine: string): string {
  return `${machine} ${base_url}`; // a name has no space in it
}

/** In there an answer is found for an instruction that waits for it. What it starts knows of it, too. */
export function answering<T>(base_url: string, machine: string, instruction: number, act: () => T): T {
  return answered().run(new Map([...(answered().get() ?? []), [place(base_url, machine), instruction]]), act);
}

/** WrongState when it, or a new one, could only end after the answer that is being found here. Earlier ones have ended. */
export function checkWait(base_url: string, machine: string, instruction?: number): void {
  const waits = answered().get()?.get(place(base_url, machine));
  if (waits !== undefined && (instruction === undefined || instruction >= waits)) throw new WrongState(say("waits_for_answer", { number: waits, machine }));
}
