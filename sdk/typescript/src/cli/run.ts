/** One command line, from its words to its exit code. */

import { EXITS, type Command } from "./commands.js";
import type { Given } from "./given.js";
import { handlerOf } from "./handlers.js";
import { Left, putAway, untilLeft } from "./interruption.js";
import { flush, NotWritten, print, put, say } from "./output.js";
import { parse } from "./parser.js";
import { reason } from "./systemerrors.js";
import { checkUtf8 } from "./utf8.js";
import { WrongUsage } from "./wrongusage.js";

const PUT_AWAY_MS = 2000; // for what is open to close, once somebody has had enough

export async function run(words: readonly string[]): Promise<number> {
  try {
    return await answered(words);
  } catch (error) {
    if (!(error instanceof NotWritten)) throw error;
    if (error.cause.code === "EPIPE") return EXITS.reader_gone;
    say(`everforge: the answer could not be written: ${reason(error.cause)}`);
    return EXITS.raised;
  }
}

/** All of the answer is written when this ends. */
async function answered(words: readonly string[]): Promise<number> {
  try {
    const code = await act(words);
    flush();
    return code;
  } catch (error) {
    if (error instanceof NotWritten) throw error;
    flush();
    return await told(error, forPrograms(words));
  }
}

async function act(words: readonly string[]): Promise<number> {
  checkUtf8(words);
  const parsed = parse(words);
  if (parsed.what === "help") put(parsed.text);
  if (parsed.what === "version") {
    const { VERSION } = await import("../generated/version.js");
    print(`everforge ${VERSION}`);
  }
  return parsed.what === "run" ? runCommand(parsed.command, parsed.given) : EXITS.done;
}

async function runCommand(command: Command, given: Given): Promise<number> {
  const left = untilLeft();
  const work = (async () => (await handlerOf(command.path))(given))();
  try {
    return (await Promise.race([work, left])) ?? EXITS.done;
  } catch (error) {
    if (error instanceof WrongUsage) error.command ??= ["everforge", ...command.path].join(" ");
    if (error instanceof Left) await Promise.race([putAway().then(() => work.catch(() => undefined)), pause(PUT_AWAY_MS)]);
    throw error;
  }
}

/** The exit code. What is none of our errors is a mistake of ours, and not hidden. */
async function told(error: unknown, asJson: boolean): Promise<number> {
  if (error instanceof Left) return error.exit;
  const { tell, tellUsage } = await import("./failures.js");
  const { EverforgeError } = await import("../error.js");
  if (error instanceof WrongUsage) return tellUsage(error, asJson);
  if (error instanceof EverforgeError) return tell(error, asJson);
  throw error;
}

function forPrograms(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).includes("--json");
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((done) => setTimeout(done, milliseconds));
}
