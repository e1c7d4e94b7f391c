/** Numbers as they are written on a command line: what the Python one takes, and nothing else. */

const WHOLE = /^[+-]?\d+(_\d+)*(\.0+)?$/;
const DIGITS = String.raw`\d+(?:_\d+)*`;
const POINTED = new RegExp(`^[+-]?(?:${DIGITS}(?:\\.(?:${DIGITS})?)?|\\.${DIGITS})(?:[eE][+-]?\\d+)?$`);
const WORDED = /^([+-]?)(inf|infinity|nan)$/i;

/** undefined: it is none. */
export function wholeNumber(text: string): number | undefined {
  const trimmed = text.trim();
  return WHOLE.test(trimmed) ? Number(trimmed.replaceAll("_", "")) : undefined;
}

export function anyNumber(text: string): number | undefined {
  const trimmed = text.trim();
  if (POINTED.test(trimmed)) return Number(trimmed.replaceAll("_", ""));
  const word = WORDED.exec(trimmed);
  if (word === null) return undefined;
  if (word[2]?.toLowerCase() === "nan") return Number.NaN;
  return word[1] === "-" ? -Infinity : Infinity;
}

/** format(value, "g"), for sentences. */
export function shortNumber(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const [digits = "0", power = "0"] = value.toExponential(5).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return String(Number(value.toPrecision(6)));
  const sign = exponent < 0 ? "-" : "+";
  return `${String(Number(digits))}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
