/** Where things lie on this computer. */

import { mkdirSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";

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

/** With those above it, one by one: Node's own way says that a folder is not there when it cannot be made, and does not come back below /proc. */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && above !== path) {
      makeFolder(above, mode);
      makeOne(path, mode);
    } else if (!isFolder(path)) throw error;
  }
}

/** Whoever else makes it meanwhile is welcome. */
function makeOne(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
