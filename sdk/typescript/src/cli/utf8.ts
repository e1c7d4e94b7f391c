/** Node has read the words of the command line as UTF-8 before anybody is asked, and has put U+FFFD in the place of what is none. */

import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";

import { quoted } from "../quoting.js";
import { WrongUsage } from "./wrongusage.js";

const LOST = "\ufffd";
const RAW = "/proc/self/cmdline"; // of Linux: the words as they were typed, each with a NUL behind it

/** Throws WrongUsage for the first that is not UTF-8: it is not guessed what was meant, and nothing else is sent in its place. */
export function checkUtf8(words: readonly string[], raw: string = RAW): void {
  if (!words.some((word) => word.includes(LOST))) return;
  const typed = bytesOf(words.length, raw);
  words.forEach((word, i) => {
    const found = typed?.[i];
    if (word.includes(LOST) && (found === undefined || !isUtf8(found))) throw new WrongUsage(`${quoted(word)} is not UTF-8`, []);
  });
}

/** Of the last words, which are ours; undefined where nobody tells. */
function bytesOf(count: number, raw: string): Buffer[] | undefined {
  try {
    const words = readFileSync(raw, "latin1").split("\0").slice(0, -1).slice(-count);
    return words.map((word) => Buffer.from(word, "latin1"));
  } catch {
    return undefined; // then U+FFFD is refused also where it was meant
  }
}
