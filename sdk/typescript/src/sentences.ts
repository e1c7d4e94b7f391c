/** What a client says when something goes wrong around a request: the sentences are the wire's, the same in three languages. */

import { QUOTED_MAX, SENTENCES } from "./generated/sentences.js";

export type Sentence = keyof typeof SENTENCES;

export function say(what: Sentence, words: Record<string, string | number> = {}): string {
  return SENTENCES[what].replace(/\{(\w+)\}/g, (whole, name: string) => (name in words ? String(words[name]) : whole));
}

/** What somebody gave, as a sentence shows it. Counted in characters, as everywhere. */
export function quoted(text: unknown): string {
  const characters = Array.from(shown(text));
  return characters.length <= QUOTED_MAX ? `'${characters.join("")}'` : `'${characters.slice(0, QUOTED_MAX).join("")}...'`;
}

/** Text as it stands; for whatever else a program without types may give, something short. */
function shown(value: unknown): string {
  if (typeof value === "string") return value.length > 4 * QUOTED_MAX ? value.slice(0, 4 * QUOTED_MAX) : value;
  try {
    return (JSON.stringify(value) as string | undefined)?.slice(0, 4 * QUOTED_MAX) ?? typeof value;
  } catch {
    return typeof value;
  }
}
