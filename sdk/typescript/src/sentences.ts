/** What a client says when something goes wrong around a request: the sentences are the wire's, the same in three languages. */

import { SENTENCES } from "./generated/sentences.js";

export type Sentence = keyof typeof SENTENCES;

export function say(what: Sentence, words: Record<string, string | number> = {}): string {
  return SENTENCES[what].replace(/\{(\w+)\}/g, (whole, name: string) => (name in words ? String(words[name]) : whole));
}
