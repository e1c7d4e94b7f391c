/** Text that is being typed, over several lines, and where the cursor stands in it. No I/O. */

const LETTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const WORD = /[\p{L}\p{N}_]/u;

export class Editing {
  constructor(public text = "", public cursor = text.length) {}

  set(text: string, cursor = text.length): void {
    this.text = text;
    this.cursor = cursor;
  }

  get before(): string {
    return this.text.slice(0, this.cursor);
  }

  get after(): string {
    return this.text.slice(this.cursor);
  }

  /** Of the line that the cursor is in, up to it. */
  get lineBefore(): string {
    return this.before.slice(this.before.lastIndexOf("\n") + 1);
  }

  get lineAfter(): string {
    return this.after.split("\n", 1)[0] ?? "";
  }

  get onFirstLine(): boolean {
    return !this.before.includes("\n");
  }

  get onLastLine(): boolean {
    return !this.after.includes("\n");
  }

  insert(text: string): void {
    this.set(this.before + text + this.after, this.cursor + text.length);
  }

  /** What stands from `start` to the cursor gives way. */
  replace(start: number, text: string): void {
    this.set(this.text.slice(0, start) + text + this.after, start + text.length);
  }

  // --- moving ----------------------------------------------------------------------------------------------------------------------------

  left(): void {
    this.cursor -= lastLetter(this.before).length;
  }

  right(): void {
    this.cursor += firstLetter(this.after).length;
  }

  lineStart(): void {
    this.cursor -= this.lineBefore.length;
  }

  lineEnd(): void {
    this.cursor += this.lineAfter.length;
  }

  /** One line up or down, as far in as before, or as far as that line goes. */
  up(): void {
    const column = this.lineBefore.length;
    this.lineStart();
    this.cursor -= 1;
    const length = this.lineBefore.length;
    this.cursor -= Math.max(0, length - column);
  }

  down(): void {
    const column = this.lineBefore.length;
    this.lineEnd();
    this.cursor += 1;
    this.cursor += Math.min(column, this.lineAfter.length);
  }

  wordLeft(): void {
    this.cursor = this.wordStart();
  }

  wordRight(): void {
    let at = this.cursor;
    while (at < this.text.length && !WORD.test(this.text[at] ?? "")) at++;
    while (at < this.text.length && WORD.test(this.text[at] ?? "")) at++;
    this.cursor = at;
  }

  private wordStart(): number {
    let at = this.cursor;
    while (at > 0 && !WORD.test(this.text[at - 1] ?? "")) at--;
    while (at > 0 && WORD.test(this.text[at - 1] ?? "")) at--;
    return at;
  }

  // --- deleting --------------------------------------------------------------------------------------------------------------------------

  backspace(): void {
    this.replace(this.cursor - lastLetter(this.before).length, "");
  }

  delete(): void {
    this.set(this.before + this.after.slice(firstLetter(this.after).length), this.cursor);
  }

  deleteToLineStart(): void {
    this.replace(this.cursor - this.lineBefore.length, "");
  }

  deleteToLineEnd(): void {
    const rest = this.lineAfter.length || (this.after === "" ? 0 : 1);
    this.set(this.before + this.after.slice(rest), this.cursor);
  }

  deleteWord(): void {
    this.replace(this.wordStart(), "");
  }
}

function firstLetter(text: string): string {
  return LETTERS.segment(text.slice(0, 64))[Symbol.iterator]().next().value?.segment ?? "";
}

function lastLetter(text: string): string {
  const end = text.slice(-64);
  return [...LETTERS.segment(end)].at(-1)?.segment ?? "";
}
