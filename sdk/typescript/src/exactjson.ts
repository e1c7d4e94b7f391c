/** JSON to the letter: numbers as they were written, and the one spelling that hashes of the audit log are made of. */

/** A number that JavaScript would not spell as it was: a fraction, a very large one. */
export class ExactNumber {
  constructor(readonly text: string) {}

  valueOf(): number {
    return Number(this.text);
  }
}

const DEPTH_MAX = 500;
// eslint-disable-next-line no-control-regex -- a string in JSON has none of them
const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;

/** SyntaxError when it is none. Objects have no prototype, so that any name can be one of theirs. */
export function parseExactly(text: string): unknown {
  const reader = new Reader(text);
  const found = reader.value(0);
  reader.end();
  return found;
}

class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  end(): void {
    if (this.text.slice(this.#at).trim() !== "") throw new SyntaxError("there is more behind the JSON");
  }

  #next(): RegExpExecArray {
    TOKEN.lastIndex = this.#at;
    const found = TOKEN.exec(this.text);
    if (found === null) throw new SyntaxError(`no JSON at character ${this.#at}`);
    this.#at = TOKEN.lastIndex;
    return found;
  }

  value(depth: number): unknown {
    if (depth > DEPTH_MAX) throw new SyntaxError("it is too deep");
    const [, sign, string, number, word] = this.#next();
    if (string !== undefined) return JSON.parse(string);
    if (number !== undefined) return numberOf(number);
    if (word !== undefined) return JSON.parse(word);
    if (sign === "{") return this.#object(depth);
    if (sign === "[") return this.#list(depth);
    throw new SyntaxError(`no value before character ${this.#at}`);
  }

  #object(depth: number): unknown {
    const found = Object.create(null) as Record<string, unknown>;
    if (this.#skip("}")) return found;
    for (;;) {
      const [, , name] = this.#next();
      if (name === undefined || !this.#skip(":")) throw new SyntaxError(`no name before character ${this.#at}`);
      found[JSON.parse(name) as string] = this.value(depth + 1);
      if (this.#skip("}")) return found;
      if (!this.#skip(",")) throw new SyntaxError(`no comma at character ${this.#at}`);
    }
  }

  #list(depth: number): unknown[] {
    const found: unknown[] = [];
    if (this.#skip("]")) return found;
    for (;;) {
      found.push(this.value(depth + 1));
      if (this.#skip("]")) return found;
      if (!this.#skip(",")) throw new SyntaxError(`no comma at character ${this.#at}`);
    }
  }

  #skip(sign: string): boolean {
    const before = this.#at;
    if (this.#next()[1] === sign) return true;
    this.#at = before;
    return false;
  }
}

function numberOf(text: string): number | ExactNumber {
  const plain = /^(?:0|-?[1-9]\d*)$/.test(text) && Number.isSafeInteger(Number(text));
  return plain ? Number(text) : new ExactNumber(text);
}

/** Names in order of their characters, no spaces, ASCII; TypeError for what JSON has not. */
export function canonical(value: unknown, depth = 0): string {
  if (depth > DEPTH_MAX) throw new TypeError("it is too deep");
  if (typeof value === "string") return ascii(value);
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value + 0) : spelled(value);
  if (value instanceof ExactNumber) return exact(value.text);
  if (value === null || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one, depth + 1)).join(",")}]`;
  if (typeof value !== "object") throw new TypeError(`a ${typeof value} cannot be written`);
  const names = Object.keys(value).sort(byCharacter);
  return `{${names.map((name) => `${ascii(name)}:${canonical((value as Record<string, unknown>)[name], depth + 1)}`).join(",")}}`;
}

function ascii(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function exact(text: string): string {
  if (/^-?\d+$/.test(text)) return text === "-0" ? "0" : text;
  return spelled(Number(text));
}

/** As Python spells it: 1.0, 1e-05, 1e+16. */
function spelled(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`${value} cannot be written`);
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits = "", exponent = ""] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  const [sign, all] = [value < 0 ? "-" : "", digits.replace(/[-.]/g, "")];
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${all}`;
  const whole = all.slice(0, power + 1).padEnd(power + 1, "0");
  return `${sign}${whole}.${all.slice(power + 1) || "0"}`;
}

/** Not as JavaScript compares, which takes a character of two halves for two. */
function byCharacter(one: string, other: string): number {
  const [a, b] = [Array.from(one), Array.from(other)];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i]?.codePointAt(0) ?? 0) - (b[i]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
