/** Values that many commands check, spelled once. */

import { InvalidInput } from "../generated/errors.js";
import { say } from "../sentences.js";
import { quotedText } from "../quoting.js";
import { float } from "./spelling.js";
import { BadValue } from "./wrongusage.js";

/** Each of them must be one of the choices. */
export function among<T extends string>(choices: readonly T[], option: string, words: readonly string[]): T[] {
  for (const word of words) {
    if (!(choices as readonly string[]).includes(word)) throw new BadValue(`${quotedText(word)} is none of ${choices.join(", ")}`, option);
  }
  return words as T[];
}

/** undefined: it was not given. */
export function oneOf<T extends string>(choices: readonly T[], option: string, word: string | undefined): T | undefined {
  return word === undefined ? undefined : among(choices, option, [word])[0];
}

/** Of KEY=VALUE; undefined when none was given. */
export function pairs(words: readonly string[], option: string): Record<string, string> | undefined {
  if (words.length === 0) return undefined;
  const found = new Map<string, string>();
  for (const word of words) {
    const equals = word.indexOf("=");
    if (equals <= 0) throw new BadValue(`${quotedText(word)} is not KEY=VALUE`, option);
    found.set(word.slice(0, equals), word.slice(equals + 1));
  }
  return Object.fromEntries(found);
}

/** For how long code may run. Looked at here, since sentences of a command line have a point in numbers like this one. */
export function timeout(seconds: number | undefined): number | undefined {
  if (seconds !== undefined && !(seconds > 0 && Number.isFinite(seconds))) throw new InvalidInput(say("bad_timeout", { text: float(seconds) }));
  return seconds;
}

/** That can be written as JSON. */
export function finite(name: string, value: number | undefined): number | undefined {
  if (value !== undefined && !Number.isFinite(value)) throw new InvalidInput(say("not_a_number", { name, text: float(value) }));
  return value;
}
