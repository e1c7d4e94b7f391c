/** Names of machines near one that was mistyped. To look for them may never be in the way. */

import { EverforgeError } from "../error.js";
import { near } from "./closeness.js";
import { connected } from "./connection.js";

const LOOKED_AT_MAX = 2000; // of the newest

/** `; did you mean ...?`, or nothing. */
export async function nearNames(name: string): Promise<string> {
  try {
    return suggestion(name, await connected((server) => first(server.machines(), LOOKED_AT_MAX)));
  } catch (error) {
    if (error instanceof EverforgeError) return "";
    throw error;
  }
}

async function first(machines: AsyncIterable<{ name: string }>, most: number): Promise<string[]> {
  const found: string[] = [];
  for await (const machine of machines) {
    found.push(machine.name);
    if (found.length >= most) break;
  }
  return found;
}

export function suggestion(name: string, known: readonly string[]): string {
  const nearest = near(name, known);
  return nearest.length > 0 ? `; did you mean ${nearest.join(" or ")}?` : "; `everforge machine list` shows those there are";
}
