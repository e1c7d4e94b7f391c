/** What went wrong, told once: a sentence on stderr that says what to do, or JSON for programs, and the exit code that goes with it. */

import { EverforgeError } from "../error.js";
import { printable } from "../quoting.js";
import { EXITS, UNREACHED } from "./commands.js";
import { say } from "./output.js";
import { dumps } from "./spelling.js";
import { isSystemError, reason } from "./systemerrors.js";
import type { WrongUsage } from "./wrongusage.js";

/** What was timed out. */
export const LONGER = "give it longer with --instruction-timeout-seconds";

/** A file of this computer, not of a machine. */
export class LocalTrouble extends EverforgeError {
  static override readonly code: string = "LocalTrouble";
}

/** What the operating system says about a file of this computer becomes a sentence that names it. */
export async function local<T>(path: string, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new LocalTrouble(`${error.path ?? path}: ${reason(error)}`);
  }
}

/** The exit code. */
export function tell(error: EverforgeError, asJson: boolean): number {
  const { code, message, retry, requestId: id, details } = error;
  tellAll({ code, message, retry, id, details }, asJson);
  return UNREACHED.has(code) ? EXITS.unreachable : EXITS.refused;
}

export function tellUsage(error: WrongUsage, asJson: boolean): number {
  tellAll({ code: "WrongUsage", message: error.sentence, retry: "never", id: null, details: {} }, asJson);
  return EXITS.usage;
}

function tellAll(body: { message: string; [field: string]: unknown }, asJson: boolean): void {
  say(asJson ? dumps(body) : `everforge: ${obeyedByNone(body.message)}`);
}

/** Lines that a terminal shows and does not obey, whatever was typed, or a server said. */
function obeyedByNone(message: string): string {
  return message.split("\n").map(printable).join("\n");
}
