/** Pictures: shown where the terminal can, else kept in files. */

import { Buffer } from "node:buffer";
import { lstatSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { makeFolder } from "../../node/folders.js";
import { mimeBundle, type Bundle } from "../../results.js";
import { isSystemError, reason } from "../systemerrors.js";
import { stateFolder } from "./folders.js";

const PICTURE_BYTES_MAX = 16 * 1024 * 1024;
const FILES_MAX = 200; // the oldest go first
const CHUNK = 4096; // what kitty takes at once
const SVG = "image/svg+xml";

const KINDS: Readonly<Record<string, { ending: string; magic: Buffer }>> = {
  "image/png": { ending: ".png", magic: Buffer.from("\x89PNG\r\n\x1a\n", "latin1") },
  "image/jpeg": { ending: ".jpg", magic: Buffer.from("\xff\xd8\xff", "latin1") },
  [SVG]: { ending: ".svg", magic: Buffer.alloc(0) },
};

export type Way = "kitty" | "iterm" | "none";

/** How this terminal shows pictures, by what it says of itself. Inside tmux or screen it is not this terminal that listens. */
export function way(environment: NodeJS.ProcessEnv = process.env): Way {
  const term = environment["TERM"] ?? "";
  const program = environment["TERM_PROGRAM"] ?? "";
  if (environment["TMUX"] || /^(screen|tmux)/.test(term)) return "none";
  if (term.includes("kitty") || environment["KITTY_WINDOW_ID"] || program === "ghostty" || term.includes("ghostty")) return "kitty";
  if (["iTerm.app", "WezTerm", "mintty"].includes(program) || environment["LC_TERMINAL"] === "iTerm2") return "iterm";
  return "none";
}

export interface Picture {
  mime: string;
  content: Buffer;
}

/** The first of a bundle that is what it says it is. */
export function pictureOf(data: Bundle | null | undefined): Picture | undefined {
  const bundle = mimeBundle(data);
  for (const [mime, { magic }] of Object.entries(KINDS)) {
    const found = bundle[mime];
    if (typeof found !== "string") continue;
    const content = Buffer.from(found, mime === SVG ? "utf8" : "base64");
    if (content.subarray(0, magic.length).equals(magic) && content.length <= PICTURE_BYTES_MAX) return { mime, content };
  }
  return undefined;
}

export class Pictures {
  private readonly machine: string;

  constructor(machine: string, private readonly way: Way, private readonly folder = join(stateFolder(), "pictures")) {
    this.machine = machine.replace(/[^a-z0-9-]/g, "");
  }

  /** What to write to the terminal: the picture itself, or where it lies. */
  shown({ mime, content }: Picture, number: number): string {
    if (this.way === "kitty" && mime === "image/png") return kitty(content);
    if (this.way === "iterm" && mime !== SVG) return `\x1b]1337;File=inline=1;size=${String(content.length)}:${content.toString("base64")}\x07\n`;
    try {
      return `[picture: ${this.keep(content, KINDS[mime]?.ending ?? "", number)}]\n`;
    } catch (error) {
      if (!isSystemError(error)) throw error;
      return `[a picture that could not be written to ${this.folder}: ${reason(error)}]\n`;
    }
  }

  private keep(content: Buffer, ending: string, number: number): string {
    makeFolder(this.folder, 0o700);
    const kept = readdirSync(this.folder).filter((name) => /^[^.].*\./.test(name)).map((name) => join(this.folder, name));
    const oldest = kept.map((path) => ({ path, time: lstatSync(path).mtimeMs })).sort((a, b) => a.time - b.time);
    for (const { path } of oldest.slice(0, Math.max(0, kept.length + 1 - FILES_MAX))) rmSync(path, { force: true });
    const name = `${this.machine}-${String(number)}${ending}`;
    const fresh = join(this.folder, `.${name}.${String(process.pid)}`);
    writeFileSync(fresh, content);
    renameSync(fresh, join(this.folder, name));
    return join(this.folder, name);
  }
}

function kitty(content: Buffer): string {
  const text = content.toString("base64");
  const count = Math.ceil(text.length / CHUNK);
  const parts = Array.from({ length: count }, (_, i) => {
    const more = i < count - 1 ? 1 : 0;
    return `\x1b_G${i === 0 ? "a=T,f=100,q=2," : ""}m=${String(more)};${text.slice(i * CHUNK, (i + 1) * CHUNK)}\x1b\\`;
  });
  return `${parts.join("")}\n`;
}
