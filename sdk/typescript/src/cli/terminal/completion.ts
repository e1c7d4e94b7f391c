/** Completion from the live machine, and of the prompt's own words. */

import type { Completed } from "../../generated/api.js";
import { isPrintable } from "../../quoting.js";
import { COMMANDS } from "./commands.js";

const COMPLETE_MS = 3000; // after which a person would rather type it
const MATCHES_MAX = 500;
const COLUMN_GAP = 2;
const WIDTH = 80;

/** Places are counted in letters, as Python does. */
export type Completer = (code: string, cursor: number) => Promise<Completed>;

export interface Completion {
  /** from where what is typed gives way, and to what */
  start: number;
  insert: string | undefined;
  /** to be shown, where there are several and nothing more that all begin with */
  choices: string;
}

export async function complete(completer: Completer, text: string, cursor: number): Promise<Completion> {
  const before = text.slice(0, cursor);
  const found = await asked(completer, text, [...before].length);
  const start = Math.min([...text].slice(0, found.start).join("").length, cursor);
  const own = /^%\S*$/.test(before) ? Object.keys(COMMANDS).filter((name) => name.startsWith(before)) : [];
  const matches = [...new Set([...own, ...found.matches.filter(isPrintable).slice(0, MATCHES_MAX)])];
  const from = own.length > 0 ? 0 : start;
  const common = commonStart(matches);
  const typed = text.slice(from, cursor);
  const longer = matches.length > 0 && common.length > typed.length ? common : undefined;
  return { start: from, insert: matches.length === 1 ? matches[0] : longer, choices: matches.length > 1 && longer === undefined ? inColumns(matches) : "" };
}

/** No completion is no reason to stop typing. */
async function asked(completer: Completer, text: string, cursor: number): Promise<{ matches: string[]; start: number }> {
  const nothing = { matches: [], start: cursor };
  const late = new Promise<typeof nothing>((done) => setTimeout(() => { done(nothing); }, COMPLETE_MS).unref());
  return Promise.race([completer(text, cursor).catch(() => nothing), late]);
}

function commonStart(words: readonly string[]): string {
  return words.reduce((common, word) => {
    let i = 0;
    while (i < common.length && common[i] === word[i]) i++;
    return common.slice(0, i);
  }, words[0] ?? "");
}

function inColumns(words: readonly string[]): string {
  const width = Math.max(...words.map((word) => word.length)) + COLUMN_GAP;
  const across = Math.max(1, Math.floor(WIDTH / width));
  const rows = Array.from({ length: Math.ceil(words.length / across) }, (_, i) => words.slice(i * across, (i + 1) * across));
  return rows.map((row) => `${row.map((word) => word.padEnd(width)).join("").trimEnd()}\n`).join("");
}
