/** Entries of a tape as people read them: what was given, what was said, how it ended. No I/O. */

import type { Ended, Output } from "../../generated/entries.js";
import { failureText, mimeBundle, type Bundle } from "../../results.js";
import { spelled } from "../spelling.js";
import type { Kind } from "./colours.js";

/** Any of the tape, or one that a younger server has and this client does not know. */
export interface AnyEntry {
  type: string;
  position: number;
  cursor: number;
  instruction?: number | null;
  [field: string]: unknown;
}

/** Text that is written in one go. `cursor` is where to go on behind it. */
export interface Piece {
  cursor: number;
  /** "" for what is not shown */
  kind: Kind | "json" | "";
  text: string;
  /** its newline has not come */
  partial: boolean;
}

function piece(cursor: number, kind: Piece["kind"], text = "", partial = false): Piece {
  return { cursor, kind, text, partial };
}

export function pieces(entry: AnyEntry): Piece[] {
  const { cursor } = entry;
  switch (entry.type) {
    case "output":
      return linesOf(entry as unknown as Output);
    case "accepted":
      return [piece(cursor, "code", `>>> ${spelled(entry["code"] ?? "").replace(/\n+$/, "").split("\n").join("\n... ")}`)];
    case "displayed":
      return [piece(cursor, "note", shownAs(entry["data"] as Bundle))];
    case "ended":
      return [endOf(entry as unknown as Ended)];
    case "lost":
      return [piece(cursor, "note", `[the machine is back where it was at position ${spelled(entry["since_position"])}: ${spelled(entry["reason"])}]`)];
    default:
      return [piece(cursor, "")];
  }
}

/** Only the last line of an output can be partial. */
function linesOf(entry: Output): Piece[] {
  const last = entry.lines.length - 1;
  return entry.lines.map((text, i) => piece(entry.position + i, entry.stream === "stderr" ? "stderr" : "stdout", text, entry.partial === true && i === last));
}

function endOf(entry: Ended): Piece {
  const remark = entry.note ? `[${entry.note}]` : "";
  const value = entry.value ?? "";
  const failure = () => failureText(entry.end, entry.error ?? null, entry.traceback ?? null) || `[${entry.end}]`;
  const [first, kind] = entry.end === "value" ? [value, value === "" ? "note" as const : "value" as const] : [failure(), "error" as const];
  const text = [first, remark].filter((part) => part !== "").join("\n");
  return piece(entry.cursor, text === "" ? "" : kind, text);
}

/** Of something displayed, where only text can be shown. */
export function shownAs(data: Bundle | null | undefined): string {
  const bundle = mimeBundle(data);
  const text = bundle["text/plain"];
  if (text !== undefined && text !== "") return spelled(text);
  return `[${Object.keys(bundle).sort().join(", ") || "nothing"}]`;
}

/** Puts pieces one under the other: an unfinished line is finished before anything but output follows it. */
export class Lines {
  /** the last line has no newline yet */
  open = false;

  /** What goes before the piece, and what behind it. */
  around(piece: Piece): [string, string] {
    if (piece.kind === "") return ["", ""];
    const before = this.open && piece.kind !== "stdout" && piece.kind !== "stderr" ? "\n" : "";
    if (piece.text !== "" || !piece.partial) this.open = piece.partial;
    return [before, piece.partial ? "" : "\n"];
  }
}
