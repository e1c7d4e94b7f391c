/** Where text lands on a terminal of a given width. No I/O. */

export const FIRST = ">>> ";
export const MORE = "... ";

const NARROW = /^[\x20-\x7e]*$/;
const NONE = /^[\p{M}\p{Cf}]$/u;
const WIDE = /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

/** Columns that it takes. */
export function columns(text: string): number {
  if (NARROW.test(text)) return text.length;
  return [...text].reduce((sum, letter) => sum + (NONE.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1), 0);
}

export interface Drawn {
  text: string;
  /** rows between the first and the one the cursor is in, and its column */
  row: number;
  column: number;
  /** rows below the cursor's */
  below: number;
}

/** The prompt with what was typed at it, ready to be written from the beginning of a row; the cursor is then at its end. */
export function draw(text: string, cursor: number, width: number): Drawn {
  const lines = text.split("\n");
  const before = text.slice(0, cursor).split("\n");
  const shown = lines.map((line, i) => (i === 0 ? FIRST : MORE) + visible(line));
  const rows = (line: string): number => Math.floor(columns(line) / width) + 1; // a full row has the cursor in the next
  const above = shown.slice(0, before.length - 1).reduce((sum, line) => sum + rows(line), 0);
  const place = columns(FIRST) + columns(visible(before.at(-1) ?? ""));
  const all = shown.reduce((sum, line) => sum + rows(line), 0);
  const row = above + Math.floor(place / width);
  const filled = shown.map((line) => (columns(line) > 0 && columns(line) % width === 0 ? `${line} \b` : line)); // else it would wait at the edge
  return { text: filled.join("\n"), row, column: place % width, below: all - 1 - row };
}

/** What was typed or pasted is shown, and not obeyed. */
function visible(line: string): string {
  return line.replaceAll("\t", "    ").replace(/\p{Cc}/gu, "?");
}
