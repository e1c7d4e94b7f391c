/** Ctrl-C while an instruction runs. */

import { EverforgeError } from "../../error.js";
import type { Instruction, Machine } from "../../node.js";
import { leaveNow, meaning } from "../interruption.js";
import { say } from "../output.js";

const INTERRUPTED = 130;

/** The first Ctrl-C interrupts the instruction, also when it is just being given, and its end is still waited for; the second leaves. */
export async function interrupting<T>(machine: Machine, give: () => Promise<Instruction>, wait: (given: Instruction) => Promise<T>): Promise<T> {
  let given: Instruction | undefined;
  let pressed = 0;
  const hear = (): void => {
    pressed += 1;
    if (pressed === 1) {
      say("everforge: interrupting; Ctrl-C again leaves at once");
      if (given !== undefined) void interrupt(given, () => pressed > 1);
      return;
    }
    if (given !== undefined) {
      const kills = `\`everforge machine interrupt ${machine.name}\` kills it, with the machine's variables`;
      say(`everforge: instruction ${String(given.number)} of ${machine.name} goes on: ${kills}`);
    }
    leaveNow(INTERRUPTED);
  };
  return meaning(hear, async () => {
    given = await give();
    if (pressed > 0) void interrupt(given, () => pressed > 1);
    return wait(given);
  });
}

/** Whoever leaves meanwhile does not hear how it went. */
async function interrupt(instruction: Instruction, hasLeft: () => boolean): Promise<void> {
  try {
    await instruction.interrupt();
  } catch (error) {
    if (!(error instanceof EverforgeError)) throw error;
    if (!hasLeft()) say(`everforge: it could not be interrupted: ${error.message}`);
  }
}
