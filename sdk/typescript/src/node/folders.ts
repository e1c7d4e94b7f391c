/** Where things lie on this computer. Changes nothing. */

import { userInfo } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** null where there is none: of a system service. */
export function home(): string | null {
  const given = process.env["HOME"];
  if (given !== undefined && given !== "") return given;
  try {
    return userInfo().homedir || null;
  } catch {
    return null;
  }
}

export function configHome(): string {
  const given = process.env["XDG_CONFIG_HOME"] ?? "";
  if (isAbsolute(given)) return given; // the XDG rules: a relative path there is to be ignored
  const own = home();
  return own === null ? "/etc/xdg" : join(own, ".config"); // nobody's home; nothing is written there
}

/** Machines and their snapshots, and what the server on this computer leaves for its clients. */
export function dataFolder(): string {
  const chosen = process.env["EVERFORGE_DATA"];
  if (chosen !== undefined && chosen !== "") return resolve(expanded(chosen));
  const base = process.env["XDG_DATA_HOME"] ?? "";
  if (isAbsolute(base)) return join(base, "everforge");
  const own = home();
  return own === null ? "/var/lib/everforge/share" : join(own, ".local/share/everforge");
}

function expanded(path: string): string {
  const own = home();
  return own !== null && (path === "~" || path.startsWith("~/")) ? join(own, path.slice(2)) : path;
}
