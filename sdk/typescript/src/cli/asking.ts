/** Questions to the person at the terminal; elsewhere lines of stdin, or a refusal that says which option to give. */

import { leaveNow } from "./interruption.js";
import { onTerminal, say } from "./output.js";
import { firstLine } from "./stdin.js";
import { BadValue } from "./wrongusage.js";

const INTERRUPTED = 130;
const ANSWER_CHARACTERS_MAX = 4096;

/** Asked again while nothing is answered. */
export async function ask(question: string, option: string): Promise<string> {
  if (!(onTerminal.stdin && onTerminal.stderr)) throw new BadValue("it is needed, and there is no terminal to ask at", option);
  for (;;) {
    const found = (await typed(`${question}: `, true)).trim();
    if (found !== "") return found;
  }
}

/** Without echo; or the first line of stdin, when that is not a terminal. */
export async function askSecret(question: string, option: string): Promise<string> {
  const found = (onTerminal.stdin ? await typed(`${question}: `, false) : await firstLine()).trim();
  if (found === "") throw new BadValue("none was given", option);
  return found;
}

/** Whatever it is, without echo, as it was typed. */
export async function askHidden(question: string): Promise<string> {
  return typed(`${question}: `, false);
}

/** Anything but a yes leaves. */
export async function confirm(question: string): Promise<void> {
  for (;;) {
    const found = (await typed(`${question} [y/N]: `, true)).trim().toLowerCase();
    if (found === "y" || found === "yes") return;
    if (found === "" || found === "n" || found === "no") return away();
    say("Error: invalid input");
  }
}

/** Never comes back: whoever runs the command leaves. */
function away(): Promise<never> {
  leaveNow(INTERRUPTED);
  return new Promise(() => undefined);
}

/** A line that is typed key by key, so that it can be hidden, and so that Ctrl-C and Ctrl-D are ours. */
async function typed(question: string, shown: boolean): Promise<string> {
  say(question, "");
  const { stdin } = process;
  stdin.setRawMode(true);
  try {
    let found = "";
    for await (const part of stdin.iterator({ destroyOnReturn: false })) {
      for (const key of String(part)) {
        if (key === "\r" || key === "\n") return found;
        if (key === "\x03" && shown) say("^C", "");
        if (key === "\x03" || (key === "\x04" && found === "")) return await away();
        const before = found;
        found = withKey(found, key);
        if (shown) say(found.startsWith(before) ? found.slice(before.length) : "\b \b".repeat([...before].length - [...found].length), "");
      }
    }
    return await away();
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    say("");
  }
}

export function withKey(text: string, key: string): string {
  if (key === "\x7f" || key === "\b") return [...text].slice(0, -1).join("");
  if (key === "\x15") return "";
  return key < " " || text.length >= ANSWER_CHARACTERS_MAX ? text : text + key;
}
