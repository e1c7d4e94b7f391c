/** The few colours that there are. */

const RESET = "\x1b[0m";

export const COLOURS = { stderr: "\x1b[31m", error: "\x1b[31m", note: "\x1b[2m", code: "\x1b[36m", strong: "\x1b[1m", value: "", stdout: "" } as const;
export type Kind = keyof typeof COLOURS;

/** Whatever colours the text itself has, they end with it. */
export function paint(kind: Kind, text: string): string {
  const colour = COLOURS[kind];
  return text !== "" && (colour !== "" || text.includes("\x1b")) ? `${colour}${text}${RESET}` : text;
}

/** Where in one colour, what in another. */
export function paintTraceback(text: string): string {
  const lines = text.split("\n");
  const last = Math.max(0, lines.findLastIndex((line) => line.slice(0, 1).trim() !== "" && !line.startsWith("[")));
  return lines.map((line, i) => paint(line.startsWith("  File ") ? "code" : i >= last ? "error" : "value", line)).join("\n");
}
