/** Progress on stderr, on a terminal: a spinner where a wait is long, a bar where bytes go. stdout is for results. */

import { onTerminal, say } from "./output.js";
import { printable } from "../quoting.js";
import { size } from "./tables.js";

const SPINNER_AFTER_MS = 500; // what is done sooner needs none
const FRAME_MS = 100;
const BAR_CHARACTERS = 30;
export const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
export const CLEAR_LINE = "\r\x1b[K";

export async function waiting<T>(text: string, work: () => Promise<T>): Promise<T> {
  if (!onTerminal.stderr) return work();
  let count = 0;
  let spinning: NodeJS.Timeout | undefined;
  const start = setTimeout(() => {
    spinning = setInterval(() => { say(`${CLEAR_LINE}${FRAMES[count++ % FRAMES.length] ?? ""} ${printable(text)}`, ""); }, FRAME_MS);
  }, SPINNER_AFTER_MS);
  try {
    return await work();
  } finally {
    clearTimeout(start);
    clearInterval(spinning);
    if (count > 0) say(CLEAR_LINE, "");
  }
}

export type Progress = (done: number, total: number | null) => void;

/** `work` is given whom to tell of bytes that went; undefined where nobody watches. */
export async function transfer<T>(text: string, work: (progress: Progress | undefined) => Promise<T>): Promise<T> {
  if (!onTerminal.stderr) return work(undefined);
  let drawn = 0;
  const progress: Progress = (done, total) => {
    if (Date.now() - drawn < FRAME_MS) return;
    drawn = Date.now();
    say(`${CLEAR_LINE}${printable(text)} ${bar(done, total)}`, "");
  };
  try {
    return await work(progress);
  } finally {
    if (drawn > 0) say(CLEAR_LINE, "");
  }
}

export function bar(done: number, total: number | null): string {
  if (total === null || total === 0) return size(done);
  const full = Math.min(BAR_CHARACTERS, Math.floor((done / total) * BAR_CHARACTERS));
  return `${"━".repeat(full)}${" ".repeat(BAR_CHARACTERS - full)} ${size(done)} of ${size(total)}`;
}
