/** Reads a tape and prints it: once, or for as long as there is a machine. */

import { Uncertain, Unreachable } from "../../generated/errors.js";
import type { Machine } from "../../node.js";
import { connected, suggesting } from "../connection.js";
import { coloured, flush, onTerminal, put, say } from "../output.js";
import { dumps } from "../spelling.js";
import { paint } from "./colours.js";
import { Escapes } from "./escapes.js";
import { Scribe, type Written } from "./scribe.js";
import { Lines, pieces, type AnyEntry, type Piece } from "./transcript.js";

const START = -1; // before the first entry

export interface Wanted {
  follow: boolean;
  after: number | undefined;
  instruction: number | undefined;
  output: boolean;
  positions: boolean;
  json: boolean;
}

export class Follower {
  private readonly lines = new Lines();
  private readonly escapes = onTerminal.stdout ? new Escapes() : undefined;
  private readonly coloured = coloured();
  private cursor: number | undefined;
  private scribe: Scribe | undefined;

  constructor(private readonly name: string, private readonly wanted: Wanted, private readonly cursorFile: string | undefined) {
    this.cursor = wanted.after;
  }

  async run(): Promise<void> {
    const [created, first] = await connected((server) => suggesting(this.name, () => this.look(server.machine(this.name))));
    if (this.cursorFile !== undefined) await this.remember(this.cursorFile, `${this.name}, created ${created}`);
    this.cursor ??= first;
    try {
      await connected((server) => this.follow(server.machine(this.name)), { on_connection: tell });
    } finally {
      await this.scribe?.close();
    }
  }

  /** When it was made, which tells it from another of its name; and behind what to begin. */
  private async look(machine: Machine): Promise<[string, number]> {
    const { created_at: created } = await machine.info();
    const { instruction } = this.wanted;
    return [created, instruction === undefined ? START : (await machine.instruction(instruction).info()).position - 1];
  }

  private async remember(path: string, identity: string): Promise<void> {
    flush();
    this.scribe = await Scribe.start(path, identity);
    if (this.scribe.cursor === undefined) return;
    this.cursor = this.scribe.cursor;
    this.lines.open = this.scribe.open;
  }

  private async follow(machine: Machine): Promise<void> {
    for await (const entry of this.entries(machine)) if (await this.show(entry)) return;
  }

  private async *entries(machine: Machine): AsyncGenerator<AnyEntry> {
    for (;;) {
      try {
        for await (const found of machine.tape({ after: this.cursor ?? START, follow: this.wanted.follow })) {
          const entry = found as unknown as AnyEntry;
          yield entry;
          this.cursor = entry.cursor;
        }
        return; // all of it; or the machine was deleted
      } catch (error) {
        if (!this.wanted.follow || !(error instanceof Unreachable || error instanceof Uncertain)) throw error;
      }
    }
  }

  /** Is this the end? */
  private async show(entry: AnyEntry): Promise<boolean> {
    const only = this.wanted.instruction;
    const ours = only === undefined || entry.instruction === only;
    const shown = ours ? this.piecesOf(entry) : [{ cursor: entry.cursor, kind: "" as const, text: "", partial: false }];
    await this.write(shown.map((piece) => this.written(piece)));
    return ours && only !== undefined && entry.type === "ended";
  }

  private piecesOf(entry: AnyEntry): Piece[] {
    return this.wanted.json ? [{ cursor: entry.cursor, kind: "json", text: dumps(entry), partial: false }] : pieces(entry);
  }

  private written(piece: Piece): Written {
    const { cursor, kind } = piece;
    if (kind === "json") return { cursor, open: false, text: `${piece.text}\n` };
    const hidden = kind === "" || (this.wanted.output && kind !== "stdout" && kind !== "stderr");
    return hidden ? { cursor, open: this.lines.open, text: "" } : { cursor, text: this.textOf(piece, kind), open: this.lines.open };
  }

  private textOf(piece: Piece, kind: Exclude<Piece["kind"], "" | "json">): string {
    const mark = `${String(piece.cursor)}${piece.partial ? "+" : ""} `;
    const [before, after] = this.wanted.positions ? ["", "\n"] : this.lines.around(piece);
    const text = this.wanted.positions ? mark + piece.text.replaceAll("\n", `\n${mark}`) : piece.text;
    const passed = this.escapes === undefined ? text : cutEnd(this.escapes.passOn(text + after), after);
    return before + (this.coloured ? paint(kind, passed) : passed) + after;
  }

  private async write(lines: Written[]): Promise<void> {
    if (this.scribe !== undefined) {
      await this.scribe.write(lines);
      return;
    }
    for (const line of lines) put(line.text);
    if (this.wanted.follow) flush();
  }
}

export function cutEnd(text: string, end: string): string {
  return end !== "" && text.endsWith(end) ? text.slice(0, -end.length) : text;
}

function tell(is: boolean): void {
  say(is ? "everforge: connected again" : "everforge: connection lost, reconnecting...");
}
