/** What of a machine's output may reach a terminal. Colours and small movements may; what makes a terminal answer, set a title or fill the clipboard
 * may not: the answer would be typed at the prompt as if by its user. */

import { isPrintable } from "../../quoting.js";

const HELD_CHARACTERS_MAX = 4096; // of a sequence whose end has not come; what is longer is none

const TOKEN = new RegExp(
  [
    "(?<kept>\\x1b\\[[0-9;:]*[mABCDEFGJK])",
    "\\x1b\\[[0-?]*[ -/]*[@-~]", // other control sequences: questions, modes
    "\\x1b[\\]PX^_][^\\n\\x07\\x1b]*(?:\\x07|\\x1b\\\\)", // titles, clipboards, programs for the terminal
    "(?<held>\\x1b(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\\n\\x07\\x1b]*\\x1b?|[ -/]*)?$)", // its end may come yet
    "\\x1b(?:[ -/]*[0-~])?", // the short ones; and a lone escape
    "[\\x00-\\x06\\x0b\\x0c\\x0e-\\x1a\\x1c-\\x1f\\x7f-\\x9f]|\\p{Cs}", // all other controls but \a \b \t \n \r, and what cannot be encoded
  ].join("|"),
  "gu",
);

/** One for all that reaches a terminal, since a sequence begun in one stream could be finished in another. */
export class Escapes {
  private held = "";

  passOn(text: string): string {
    if (this.held === "" && isPrintable(text)) return text;
    const whole = this.held + text;
    this.held = "";
    return whole.replace(TOKEN, (...found) => {
      const groups = found.at(-1) as { kept?: string; held?: string };
      if (groups.held !== undefined && groups.held.length <= HELD_CHARACTERS_MAX) this.held = groups.held;
      return groups.kept ?? "";
    });
  }
}
