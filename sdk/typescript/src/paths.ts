/** Paths of a machine's files, and other names, as parts of an address. */

import { InvalidInput } from "./generated/errors.js";
import { checkText } from "./inputs.js";
import { quoted as shown } from "./quoting.js";
import { say } from "./sentences.js";

/** One part of an address. Its first dots are quoted, too: whoever stands on the way would take `..` for a step up. */
export function quoted(text: string): string {
  const rest = text.replace(/^\.+/, "");
  const spelled = encodeURIComponent(checkText("the name", rest));
  return "%2E".repeat(text.length - rest.length) + spelled.replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** One part of a path, whatever is in it. */
export function segment(text: unknown): string {
  if (typeof text !== "string" || text === "" || text === "." || text === "..") throw new InvalidInput(say("bad_name", { text: shown(text) }));
  return quoted(text);
}

/** Of a file or a folder, part by part. */
export function filePath(path: unknown): string {
  if (typeof path !== "string" || path === "" || path.includes("\0")) throw new InvalidInput(say("bad_file_path", { text: shown(path) }));
  return path.split("/").map(quoted).join("/");
}

/** As `filePath`, for what cannot be undone: a path that says plainly what it means. */
export function pathToDelete(path: unknown): string {
  const found = filePath(path);
  if (String(path).split("/").some((part) => part === "." || part === "..")) throw new InvalidInput(say("dots_not_deleted", { text: shown(path) }));
  return found;
}
