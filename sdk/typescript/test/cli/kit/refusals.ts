/** Sentences of what is refused. */

import { among } from "../../../src/cli/options.js";
import { WrongUsage } from "../../../src/cli/wrongusage.js";

export function amongWords(choices: readonly string[], option: string, word: string): string {
  try {
    among(choices, option, [word]);
  } catch (error) {
    if (error instanceof WrongUsage) return error.sentence;
  }
  return "taken";
}
