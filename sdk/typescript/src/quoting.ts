/** How Python writes text that came from outside: with nothing in it that a terminal would obey, or show in another order than it is written in. */

import { QUOTED_MAX } from "./generated/sentences.js";

const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** Without anything that a terminal would obey, or that would show it in another order than it is written in. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

export function isPrintable(text: string): boolean {
  return text.search(UNPRINTABLE) < 0;
}

function escaped(letter: string): string {
  const code = letter.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** repr() of a string. */
export function quotedText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`);
  return quote + inside.replace(UNPRINTABLE, (letter) => SHORT[letter] ?? escaped(letter)) + quote;
}

/** What somebody gave, as a sentence shows it: in quotes, and short. Counted in characters, as everywhere. */
export function quoted(text: unknown): string {
  const characters = Array.from(quotedText(shown(text)));
  return characters.length <= QUOTED_MAX ? characters.join("") : `${characters.slice(0, QUOTED_MAX - 3).join("")}...`;
}

/** Text as it stands; for whatever else a program without types may give, something short. */
function shown(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return (JSON.stringify(value) as string | undefined)?.slice(0, QUOTED_MAX) ?? typeof value;
  } catch {
    return typeof value;
  }
}
