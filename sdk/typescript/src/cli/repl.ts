/** `everforge repl`: a comfortable prompt on a machine, or what comes through a pipe. */

import type { Given } from "./given.js";
import { onTerminal } from "./output.js";
import { BadValue } from "./wrongusage.js";

export async function repl(given: Given): Promise<number | undefined> {
  const name = given.text("name");
  const tags = tagsOf(given.texts("tag"));
  if (name !== undefined && tags !== undefined) throw new BadValue("a machine that is there already keeps its tags: leave out --tag", "--tag");
  const timeout_seconds = given.number("instruction_timeout_seconds");
  if (onTerminal.stdin && onTerminal.stdout) {
    const { talk } = await import("./terminal/interactive.js");
    await talk({ name, timeout_seconds, tags, others: given.flag("others") });
    return undefined;
  }
  const { feed } = await import("./terminal/piped.js");
  return feed({ name, timeout_seconds, tags });
}

function tagsOf(given: readonly string[]): Record<string, string> | undefined {
  if (!given.every((pair) => pair.indexOf("=") > 0)) throw new BadValue("a tag is written key=value", "--tag");
  const pairs = given.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)] as const);
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}
