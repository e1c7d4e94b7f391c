/** Where things lie on this computer that nobody misses for long: what was typed at the prompt, pictures shown. */

import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

export function stateFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const chosen = environment["EVERFORGE_STATE"];
  if (chosen) return resolve(chosen.replace(/^~(?=\/|$)/, homedir()));
  const base = environment["XDG_STATE_HOME"] ?? "";
  return isAbsolute(base) ? join(base, "everforge") : join(homedir(), ".local", "state", "everforge");
}
