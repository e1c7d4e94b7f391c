/** Keys as they come. The terminal is ours for the whole session, so that no moment is lost between two prompts: what is typed ahead is for the next one,
 * and Ctrl-C is heard whenever it is pressed. */

import { emitKeypressEvents, type Key } from "node:readline";

import { atEnd } from "../interruption.js";
import { putNow } from "../output.js";

/** The terminal says where something pasted begins and ends. */
export const PASTES_ON = "\x1b[?2004h";
export const PASTES_OFF = "\x1b[?2004l";
const AHEAD_MAX = 64 * 1024; // keys; who types more while nobody looks has put the book on the keyboard

export interface Pressed {
  text: string;
  name: string;
  ctrl: boolean;
  meta: boolean;
}

export class Keyboard {
  private reader: ((key: Pressed) => void) | undefined;
  private readonly ahead: Pressed[] = [];
  private readonly undo: () => void;
  private readonly hear: (text: string | undefined, key: Key) => void;

  /** `interrupted`: Ctrl-C while there is no prompt; `ended`: the terminal has gone. */
  constructor(private readonly interrupted: () => void, ended: () => void) {
    this.hear = (text, key) => { this.take({ text: text ?? "", name: key.name ?? "", ctrl: key.ctrl ?? false, meta: key.meta ?? false }); };
    const { stdin } = process;
    emitKeypressEvents(stdin);
    stdin.on("keypress", this.hear);
    stdin.on("end", ended);
    stdin.setRawMode(true);
    stdin.resume();
    this.undo = atEnd(() => { this.giveBack(); });
  }

  /** Keys go to `reader` until it is taken away; first those that were typed ahead. */
  read(reader: (key: Pressed) => void): void {
    this.reader = reader;
    while (this.reader === reader) {
      const key = this.ahead.shift();
      if (key === undefined) return;
      reader(key);
    }
  }

  stop(): void {
    this.reader = undefined;
  }

  close(): void {
    this.undo();
    this.giveBack();
  }

  private giveBack(): void {
    if (this.reader !== undefined) putNow(PASTES_OFF); // somebody ends us in the middle of a prompt
    process.stdin.off("keypress", this.hear);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }

  private take(key: Pressed): void {
    if (this.reader !== undefined) this.reader(key);
    else if (key.ctrl && key.name === "c") {
      this.ahead.length = 0; // it drops what was typed before, as at any terminal
      this.interrupted();
    } else if (this.ahead.length < AHEAD_MAX) this.ahead.push(key);
  }
}
