/** What an instruction wrote and how it ended, gathered from entries of the tape. */

import type { EndKind, Retry, Stream } from "./generated/api.js";
import type { Ended, Entry, Output } from "./generated/entries.js";
import { InstructionFailed } from "./generated/errors.js";
import { say } from "./sentences.js";

export const OUTPUT_CHARACTERS_MAX = 64 * 1024 * 1024; // that a result keeps of each stream: a program that prints for days must not fill its client's memory

/** The short names of the wire and what notebooks call them. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  text: "text/plain",
  html: "text/html",
  markdown: "text/markdown",
  latex: "text/latex",
  json: "application/json",
  png: "image/png",
  jpeg: "image/jpeg",
  svg: "image/svg+xml",
  javascript: "application/javascript",
};
export type Bundle = Record<string, unknown>;

/** A line of output, that knows which stream it came from. `end` is the newline, or nothing while the line may go on. */
export class Line {
  constructor(
    readonly text: string,
    readonly stream: Stream = "stdout",
    readonly partial = false,
    readonly instruction: number | null = null,
    readonly position = -1,
  ) {}

  get end(): string {
    return this.partial ? "" : "\n";
  }

  toString(): string {
    return this.text;
  }
}

/** Something shown: a figure, a table. `data` has the same thing in several formats, by short name or MIME type. */
export class Display {
  constructor(
    readonly data: Bundle,
    readonly metadata: Record<string, unknown> = {},
  ) {}

  get png(): Uint8Array | null {
    const found = this.data["png"] ?? this.data["image/png"];
    if (typeof found !== "string") return null;
    try {
      return Uint8Array.from(atob(found), (one) => one.charCodeAt(0));
    } catch {
      return null;
    }
  }
}

/** By MIME type, as notebooks have it. */
export function mimeBundle(data: Bundle | null | undefined): Bundle {
  const pairs = Object.entries(data ?? {}).filter(([, content]) => content !== null && content !== undefined);
  return Object.fromEntries(pairs.map(([kind, content]) => [(Object.hasOwn(MIME_TYPES, kind) ? MIME_TYPES[kind] : undefined) ?? kind, content]));
}

export interface ResultFields {
  instruction: number;
  end: EndKind;
  runtime_ms: number;
  value?: string | null;
  data?: Bundle | null;
  error?: string | null;
  traceback?: string | null;
  note?: string | null;
  retry?: Retry | null;
  displays?: readonly Display[];
  stdout?: string;
  stderr?: string;
  truncated?: boolean;
}

/** The one end of an instruction, and what it wrote on the way. The code's own exception is `error`, not thrown here. */
export class Result {
  readonly instruction: number;
  readonly end: EndKind;
  readonly runtime_ms: number;
  /** repr() of the last expression */
  readonly value: string | null;
  /** the same in other formats */
  readonly data: Bundle | null;
  /** one line: type and message */
  readonly error: string | null;
  readonly traceback: string | null;
  /** what survived, what was dropped */
  readonly note: string | null;
  readonly retry: Retry;
  readonly displays: readonly Display[];
  readonly stdout: string;
  readonly stderr: string;
  /** it wrote more than a result keeps */
  readonly truncated: boolean;

  constructor(fields: ResultFields) {
    this.instruction = fields.instruction;
    this.end = fields.end;
    this.runtime_ms = fields.runtime_ms;
    this.value = fields.value ?? null;
    this.data = fields.data ?? null;
    this.error = fields.error ?? null;
    this.traceback = fields.traceback ?? null;
    this.note = fields.note ?? null;
    this.retry = fields.retry ?? "never";
    this.displays = fields.displays ?? [];
    this.stdout = fields.stdout ?? "";
    this.stderr = fields.stderr ?? "";
    this.truncated = fields.truncated ?? false;
  }

  get ok(): boolean {
    return this.end === "value";
  }

  /** What a terminal would show: the output, then the value or the traceback. */
  get text(): string {
    const last = this.ok ? (this.value ?? "") : failureText(this.end, this.error, this.traceback) || this.end;
    return [this.stdout, this.stderr, last].map(trimmed).filter(Boolean).join("\n");
  }

  /** Itself when it is a value; else InstructionFailed. */
  raiseForError(): this {
    if (this.ok) return this;
    const why = this.error || this.note || "no more is known"; // eslint-disable-line @typescript-eslint/prefer-nullish-coalescing -- an empty text says nothing either
    throw new InstructionFailed(say("ended_badly", { number: this.instruction, end: this.end, why }), { result: this });
  }
}

/** Code in the machine has called a function of this program and waits for its answer. */
export class Call {
  constructor(
    readonly number: number,
    readonly name: string,
    readonly args: readonly unknown[],
    readonly kwargs: Readonly<Record<string, unknown>>,
  ) {}
}

class Text {
  readonly parts: string[] = [];
  truncated = false;
  #room = OUTPUT_CHARACTERS_MAX;

  add(line: Line): void {
    if (line.text.length >= this.#room) {
      this.truncated = true;
      this.#room = 0; // what follows is not to look as if it came right after
      return;
    }
    this.#room -= line.text.length + 1;
    this.parts.push(line.partial ? line.text : `${line.text}\n`);
  }
}

export type Happening = Line | Display | Call;

/** Follows one instruction through the tape: gives what happens, and has the result at its end. */
export class Gathering {
  result: Result | null = null;
  readonly #texts = { stdout: new Text(), stderr: new Text() };
  readonly #displays: Display[] = [];

  constructor(readonly instruction: number) {}

  take(entry: Entry): readonly Happening[] {
    if (!("instruction" in entry) || entry.instruction !== this.instruction || this.result !== null) return [];
    switch (entry.type) {
      case "output":
        return this.#lines(entry);
      case "displayed":
        return [this.#shown(new Display(entry.data, entry.metadata ?? {}))];
      case "called":
        return [new Call(entry.call, entry.function, entry.args ?? [], entry.kwargs ?? {})];
      case "ended":
        this.result = this.#end(entry);
        return [];
      default:
        return [];
    }
  }

  #lines(entry: Output): readonly Line[] {
    const lines = linesOf(entry);
    for (const line of lines) this.#texts[line.stream].add(line);
    return lines;
  }

  #shown(display: Display): Display {
    this.#displays.push(display);
    return display;
  }

  #end(entry: Ended): Result {
    const { stdout, stderr } = this.#texts;
    return new Result({
      ...entry,
      runtime_ms: entry.runtime_ms ?? 0,
      displays: this.#displays,
      stdout: stdout.parts.join(""),
      stderr: stderr.parts.join(""),
      truncated: stdout.truncated || stderr.truncated,
    });
  }
}

/** Of an end that is no value: the traceback, and behind it what a traceback cannot know: that the time was over. Empty when nothing is known. */
export function failureText(end: string, error: string | null, traceback: string | null): string {
  const shown = end === "timed_out" ? [traceback, error] : [traceback || error]; // eslint-disable-line @typescript-eslint/prefer-nullish-coalescing -- an empty traceback is none
  return shown.filter((part) => part !== null && part !== "").map((part) => trimmed(part ?? "")).join("\n");
}

/** Of an output. Only its last line can be partial. */
export function linesOf(entry: Output): Line[] {
  const stream: Stream = entry.stream === "stderr" ? "stderr" : "stdout";
  const last = entry.partial === true ? entry.lines.length - 1 : -1;
  return entry.lines.map((text, i) => new Line(text, stream, i === last, entry.instruction, entry.position + i));
}

/** What of an entry lies behind a cursor: all, a part of its lines, or null. */
export function behind(entry: Entry, cursor: number): Entry | null {
  if (entry.cursor <= cursor) return null;
  const skip = cursor - entry.position + 1;
  if (skip <= 0 || entry.type !== "output") return entry;
  return { ...entry, position: cursor + 1, seq: entry.seq + skip, lines: entry.lines.slice(skip) };
}

/** Without newlines at its end. Not by a pattern: it would look at every newline of a long text. */
function trimmed(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "\n") end--;
  return text.slice(0, end);
}
