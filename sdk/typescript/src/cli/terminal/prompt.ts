/** The prompt: Python over several lines, history, completion from the live machine. */

import { putNow } from "../output.js";
import { ends, INDENT, indentation } from "./blocks.js";
import { complete, type Completer } from "./completion.js";
import { draw } from "./drawing.js";
import { Editing } from "./editing.js";
import type { History } from "./history.js";
import { PASTES_OFF, PASTES_ON, type Keyboard, type Pressed } from "./keyboard.js";
import { Recall } from "./recall.js";

const COLUMNS = 80; // of a terminal that does not say

/** What came of a prompt: text, or that it was thrown away with Ctrl-C, or that the person leaves. */
export type Typed = { what: "text"; text: string } | { what: "thrown away" } | { what: "left" };

export class Prompt {
  private readonly editing = new Editing();
  private recall: Recall;
  private done: ((typed: Typed) => void) | undefined;
  private pasting = false;
  private row = 0; // of the cursor, below the prompt's first

  constructor(private readonly keyboard: Keyboard, private readonly history: History, private readonly completer: Completer) {
    this.recall = new Recall(history.entries);
  }

  get isTyping(): boolean {
    return this.done !== undefined;
  }

  async read(): Promise<Typed> {
    this.editing.set("");
    this.recall = new Recall(this.history.entries);
    this.row = 0;
    putNow(PASTES_ON);
    this.show();
    const redraw = (): void => { this.show(); };
    process.stdout.on("resize", redraw);
    try {
      return await new Promise<Typed>((resolve) => {
        this.done = resolve;
        this.keyboard.read((key) => { this.take(key); });
      });
    } finally {
      process.stdout.off("resize", redraw);
      this.keyboard.stop();
      this.done = undefined;
    }
  }

  /** Whatever is written goes above the prompt. */
  above(text: string): void {
    putNow(this.erased() + text);
    this.row = 0;
    this.show();
  }

  /** It is over, without an answer. */
  abandon(): void {
    this.finish({ what: "left" }, "");
  }

  // --- what is seen ----------------------------------------------------------------------------------------------------------------------

  private erased(): string {
    return `${this.row > 0 ? `\x1b[${String(this.row)}A` : ""}\r\x1b[J`;
  }

  private show(): void {
    const drawn = draw(this.editing.text, this.editing.cursor, process.stdout.columns || COLUMNS);
    const up = drawn.below > 0 ? `\x1b[${String(drawn.below)}A` : "";
    putNow(`${this.erased()}${drawn.text}${up}\r${drawn.column > 0 ? `\x1b[${String(drawn.column)}C` : ""}`);
    this.row = drawn.row;
  }

  private finish(typed: Typed, mark: string): void {
    const { done } = this;
    if (done === undefined) return;
    this.editing.set(this.editing.text); // the cursor to the end
    this.show();
    putNow(`${mark}\n${PASTES_OFF}`);
    this.keyboard.stop();
    this.done = undefined;
    done(typed);
  }

  // --- keys ------------------------------------------------------------------------------------------------------------------------------

  private take(key: Pressed): void {
    if (key.name === "paste-start" || key.name === "paste-end") this.pasting = key.name === "paste-start";
    else if (this.pasting) this.editing.insert(key.name === "return" || key.name === "enter" ? "\n" : key.text);
    else if (this.act(key)) return;
    if (this.pasting) return; // drawn when all of it is there
    if (this.done !== undefined) this.show();
  }

  /** Is there nothing more to draw? */
  private act(key: Pressed): boolean {
    const walks = !key.ctrl && (key.name === "up" || key.name === "down");
    if (!walks && !(key.ctrl && "pn".includes(key.name))) this.recall.forget();
    if (key.name === "return" || key.name === "enter") return this.enter(key.meta);
    if (key.name === "tab") return this.tab();
    const moved = key.ctrl ? CONTROLS[key.name] : key.meta ? METAS[key.name] : PLAIN[key.name];
    if (moved !== undefined) moved(this.editing);
    else if (key.ctrl) return this.control(key.name);
    else if (walks) this.walk(key.name === "up");
    else if (key.text !== "" && !key.meta && key.text >= " ") this.editing.insert(key.text);
    return false;
  }

  private control(name: string): boolean {
    if (name === "c") this.finish({ what: "thrown away" }, "^C");
    else if (name === "d" && this.editing.text === "") this.finish({ what: "left" }, "");
    else if (name === "d") this.editing.delete();
    else if (name === "p" || name === "n") this.walk(name === "p");
    else if (name === "l") {
      putNow("\x1b[H\x1b[2J");
      this.row = 0;
    }
    return this.done === undefined;
  }

  private walk(up: boolean): void {
    const { editing } = this;
    if (up && !editing.onFirstLine) editing.up();
    else if (!up && !editing.onLastLine) editing.down();
    else {
      const found = up ? this.recall.older(editing.text, editing.before) : this.recall.newer(editing.text);
      if (found !== undefined) editing.set(found);
    }
  }

  /** What is whole is run; what is not goes on. */
  private enter(asItIs: boolean): boolean {
    const { text } = this.editing;
    if (!asItIs && !(this.editing.onLastLine && (text.trim() === "" || ends(text)))) {
      this.editing.insert(`\n${indentation(this.editing.lineBefore)}`);
      return false;
    }
    if (text.trim() !== "") this.history.add(text);
    this.finish({ what: "text", text }, "");
    return true;
  }

  private tab(): boolean {
    const line = this.editing.lineBefore;
    if (line.trim() === "") {
      this.editing.insert(" ".repeat(INDENT - (line.length % INDENT)));
      return false;
    }
    const { text, cursor } = this.editing;
    void complete(this.completer, text, cursor).then(({ start, insert, choices }) => {
      if (this.done === undefined || this.editing.text !== text || this.editing.cursor !== cursor) return; // typed on meanwhile
      if (insert !== undefined) this.editing.replace(start, insert);
      if (choices !== "") this.above(choices);
      else this.show();
    });
    return true;
  }
}

type Move = (editing: Editing) => void;

const CONTROLS: Readonly<Record<string, Move>> = {
  a: (e) => { e.lineStart(); }, e: (e) => { e.lineEnd(); }, b: (e) => { e.left(); }, f: (e) => { e.right(); },
  h: (e) => { e.backspace(); }, u: (e) => { e.deleteToLineStart(); }, k: (e) => { e.deleteToLineEnd(); }, w: (e) => { e.deleteWord(); },
  left: (e) => { e.wordLeft(); }, right: (e) => { e.wordRight(); },
};
const METAS: Readonly<Record<string, Move>> = { b: (e) => { e.wordLeft(); }, f: (e) => { e.wordRight(); }, backspace: (e) => { e.deleteWord(); } };
const PLAIN: Readonly<Record<string, Move>> = {
  left: (e) => { e.left(); }, right: (e) => { e.right(); }, home: (e) => { e.lineStart(); }, end: (e) => { e.lineEnd(); },
  backspace: (e) => { e.backspace(); }, delete: (e) => { e.delete(); },
};
