/** What a person at the prompt sees: output above the prompt or after it, one thing under the other, and a word about what is waited for. */

import { coloured, putNow } from "../output.js";
import { CLEAR_LINE, FRAMES } from "../progress.js";
import type { Bundle } from "../../results.js";
import { paint, paintTraceback, type Kind } from "./colours.js";
import { Escapes } from "./escapes.js";
import { cutEnd } from "./follower.js";
import { pictureOf, Pictures, way } from "./pictures.js";
import { Lines, pieces, type AnyEntry, type Piece } from "./transcript.js";

const FRAME_MS = 100;
const HELD_CHARACTERS_MAX = 64 * 1024; // of an unfinished line while the prompt is there

export class Screen {
  private readonly lines = new Lines();
  private readonly escapes = new Escapes();
  private readonly coloured = coloured();
  private readonly pictures: Pictures;
  private held = ""; // for above the prompt, as soon as its line is whole
  private spinner: NodeJS.Timeout | undefined;
  /** where the prompt is, while it is there: it makes room */
  private prompt: ((text: string) => void) | undefined;

  constructor(machine: string) {
    this.pictures = new Pictures(machine, way());
  }

  // --- what happens in the machine -------------------------------------------------------------------------------------------------------

  show(entry: AnyEntry): void {
    const picture = entry.type === "displayed" || entry.type === "ended" ? pictureOf(entry["data"] as Bundle | null) : undefined;
    if (picture !== undefined) {
      this.waitFor(undefined);
      this.write((this.lines.open ? "\n" : "") + this.pictures.shown(picture, entry.position));
      this.lines.open = false;
    }
    if (picture === undefined || entry.type === "ended") for (const piece of pieces(entry)) this.piece(piece);
  }

  /** Something of our own. */
  say(text: string, kind: Kind = "note"): void {
    this.piece({ cursor: 0, kind, text, partial: false });
  }

  private piece(piece: Piece): void {
    if (piece.kind === "" || piece.kind === "json") return;
    const [before, after] = this.lines.around(piece);
    const text = cutEnd(this.escapes.passOn(piece.text + after), after);
    const painted = !this.coloured ? text : piece.kind === "error" ? paintTraceback(text) : paint(piece.kind, text);
    this.waitFor(undefined);
    this.write(before + painted + after);
  }

  // --- what is waited for ----------------------------------------------------------------------------------------------------------------

  /** A moving line that is gone as soon as there is something to see. */
  waitFor(what: string | undefined): void {
    if (this.spinner !== undefined) {
      clearInterval(this.spinner);
      this.spinner = undefined;
      putNow(CLEAR_LINE);
    }
    if (what === undefined || this.prompt !== undefined) return;
    this.closeLine();
    let count = 0;
    this.spinner = setInterval(() => { putNow(`${CLEAR_LINE}${FRAMES[count++ % FRAMES.length] ?? ""} ${what}`); }, FRAME_MS);
  }

  // --- the prompt ------------------------------------------------------------------------------------------------------------------------

  beginPrompt(above: (text: string) => void): void {
    this.waitFor(undefined);
    this.closeLine();
    this.prompt = above;
  }

  endPrompt(): void {
    this.prompt = undefined;
    const rest = this.held;
    this.held = "";
    putNow(rest);
  }

  private closeLine(): void {
    if (!this.lines.open) return;
    this.write("\n");
    this.lines.open = false;
  }

  private write(text: string): void {
    if (this.prompt === undefined) {
      putNow(text);
      return;
    }
    this.held += text;
    if (this.held.length > HELD_CHARACTERS_MAX && !this.held.includes("\n")) this.held += "\n";
    const end = this.held.lastIndexOf("\n") + 1;
    if (end === 0) return;
    const whole = this.held.slice(0, end);
    this.held = this.held.slice(end);
    this.prompt(whole);
  }
}
