/** Python's logical lines: over brackets, long strings and backslashes, without what is in strings and comments. No I/O. */

export interface LogicalLine {
  indent: number;
  /** without strings, comments and space around it */
  text: string;
}

export interface Scanned {
  lines: LogicalLine[];
  /** "open": a bracket, a long string or a line goes on; "wrong": no more text can mend it */
  end: "whole" | "open" | "wrong";
}

const CLOSERS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };
const TAB = 8;

export function scan(code: string): Scanned {
  const scanner = new Scanner(code);
  const end = scanner.run();
  return { lines: scanner.lines, end };
}

class Scanner {
  readonly lines: LogicalLine[] = [];
  private at = 0;
  private readonly brackets: string[] = [];
  private text = "";
  private indent = 0;
  private begun = false;

  constructor(private readonly code: string) {}

  run(): Scanned["end"] {
    while (this.at < this.code.length) {
      if (!this.begun) this.begin();
      if (this.at >= this.code.length) break; // nothing but space
      const letter = this.code[this.at] ?? "";
      const found = letter === "\n" ? this.newline() : letter === "#" ? this.comment() : letter === "\\" ? this.backslash() : this.other(letter);
      if (found !== undefined) return found;
    }
    const bare = this.text.trim() === "" && this.brackets.length === 0;
    this.end();
    return this.brackets.length > 0 || (this.continued && bare) ? "open" : "whole";
  }

  private continued = false; // the last line ended with a backslash

  private begin(): void {
    const space = /^[ \t\f]*/.exec(this.code.slice(this.at))?.[0] ?? "";
    this.indent = [...space].reduce((depth, one) => (one === "\t" ? depth + TAB - (depth % TAB) : one === "\f" ? 0 : depth + 1), 0);
    this.at += space.length;
    this.begun = true;
  }

  private end(): void {
    const text = this.text.trim();
    if (text !== "") this.lines.push({ indent: this.indent, text });
    this.text = "";
    this.begun = false;
  }

  private newline(): Scanned["end"] | undefined {
    this.at++;
    this.continued = false;
    if (this.brackets.length === 0) this.end();
    else this.text += " ";
    return undefined;
  }

  private comment(): Scanned["end"] | undefined {
    const end = this.code.indexOf("\n", this.at);
    this.at = end < 0 ? this.code.length : end;
    return undefined;
  }

  private backslash(): Scanned["end"] | undefined {
    const next = this.code.slice(this.at + 1);
    if (next === "" || next === "\n" || next === "\r\n") return "open";
    const newline = /^\r?\n/.exec(next);
    if (newline === null) return "wrong";
    this.at += 1 + newline[0].length;
    this.continued = true;
    this.text += " ";
    return undefined;
  }

  private other(letter: string): Scanned["end"] | undefined {
    this.at++;
    if (letter === "'" || letter === '"') return this.string(letter);
    if ("([{".includes(letter)) this.brackets.push(letter);
    else if (letter in CLOSERS && this.brackets.pop() !== CLOSERS[letter]) return "wrong";
    this.text += letter;
    return undefined;
  }

  private string(quote: string): Scanned["end"] | undefined {
    const long = this.code.startsWith(quote + quote, this.at);
    const closing = long ? quote.repeat(3) : quote;
    this.at += long ? 2 : 0;
    while (this.at < this.code.length) {
      if (this.code[this.at] === "\\") {
        this.at += this.code.startsWith("\\\r\n", this.at) ? 3 : 2;
        if (!long && this.at >= this.code.length && /\\\r?\n?$/.test(this.code)) return "open";
      } else if (this.code.startsWith(closing, this.at)) {
        this.at += closing.length;
        this.text += '""';
        return undefined;
      } else if (!long && this.code[this.at] === "\n") return "wrong";
      else this.at++;
    }
    return long ? "open" : "wrong";
  }
}
