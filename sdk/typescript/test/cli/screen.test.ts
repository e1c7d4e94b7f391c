import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { paintTraceback } from "../../src/cli/terminal/colours.js";
import { commandOf } from "../../src/cli/terminal/commands.js";
import { complete } from "../../src/cli/terminal/completion.js";
import { CursorFile } from "../../src/cli/terminal/cursorfile.js";
import { Escapes } from "../../src/cli/terminal/escapes.js";
import { History } from "../../src/cli/terminal/history.js";
import { pictureOf, Pictures, way } from "../../src/cli/terminal/pictures.js";
import { Lines, pieces } from "../../src/cli/terminal/transcript.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ef-cli-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("of a machine's output a terminal gets", () => {
  it.each([
    ["colours", "\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"],
    ["no questions", "a\x1b[6nb\x1b[cc", "abc"],
    ["no titles", "a\x1b]0;title\x07b\x1b]52;c;aGk=\x1b\\c", "abc"],
    ["no other controls", "a\x00\x9b\x7fb\tc\r\n", "ab\tc\r\n"],
  ])("%s", (_, text, passed) => {
    expect(new Escapes().passOn(text)).toBe(passed);
  });

  it("no sequence that comes in two parts", () => {
    const escapes = new Escapes();
    expect(escapes.passOn("a\x1b[") + escapes.passOn("6nb")).toBe("ab");
    expect(escapes.passOn("c\x1b[3") + escapes.passOn("1md")).toBe("c\x1b[31md");
  });
});

describe("a transcript", () => {
  const entry = { position: 3, cursor: 5, time: "", instruction: 0 };

  it("has lines of output with their positions, the last one open", () => {
    const found = pieces({ ...entry, type: "output", stream: "stderr", seq: 0, lines: ["a", "b"], partial: true });
    expect(found).toEqual([{ cursor: 3, kind: "stderr", text: "a", partial: false }, { cursor: 4, kind: "stderr", text: "b", partial: true }]);
  });

  it("has code, ends and losses as people read them", () => {
    const texts = [
      { ...entry, type: "accepted", code: "a\nb\n" },
      { ...entry, type: "ended", end: "value", value: "1", note: "n" },
      { ...entry, type: "ended", end: "timed_out", traceback: "T\n", error: "E" },
      { ...entry, type: "ended", end: "lost" },
      { ...entry, type: "lost", since_position: 2, reason: "r" },
      { ...entry, type: "displayed", data: { png: "x", html: "y" } },
    ].flatMap((one) => pieces(one).map(({ text }) => text));
    expect(texts).toEqual([">>> a\n... b", "1\n[n]", "T\nE", "[lost]", "[the machine is back where it was at position 2: r]", "[image/png, text/html]"]);
  });

  it("does not show what it does not know", () => {
    expect(pieces({ ...entry, type: "news" })).toEqual([{ cursor: 5, kind: "", text: "", partial: false }]);
  });

  it("ends an open line before anything but output", () => {
    const lines = new Lines();
    expect(lines.around({ cursor: 0, kind: "stdout", text: "a", partial: true })).toEqual(["", ""]);
    expect(lines.around({ cursor: 0, kind: "stderr", text: "b", partial: true })).toEqual(["", ""]);
    expect(lines.around({ cursor: 0, kind: "value", text: "c", partial: false })).toEqual(["\n", "\n"]);
  });

  it("paints where in one colour and what in another", () => {
    expect(paintTraceback('Traceback:\n  File "x"\nE: y\n[note]')).toBe('Traceback:\n\x1b[36m  File "x"\x1b[0m\n\x1b[31mE: y\x1b[0m\n\x1b[31m[note]\x1b[0m');
  });
});

describe("pictures", () => {
  const png = Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1");

  it("are what they say, or none", () => {
    expect(pictureOf({ png: png.toString("base64") })).toEqual({ mime: "image/png", content: png });
    expect(pictureOf({ png: "bm90IG9uZQ==", text: "x" })).toBeUndefined();
  });

  it("are kept in files where the terminal cannot show them", () => {
    const shown = new Pictures("m/../x", "none", folder).shown({ mime: "image/png", content: png }, 7);
    expect(shown).toBe(`[picture: ${join(folder, "mx-7.png")}]\n`);
    expect(readFileSync(join(folder, "mx-7.png"))).toEqual(png);
  });

  it("are shown where it can", () => {
    expect([way({ TERM: "xterm-kitty" }), way({ TERM_PROGRAM: "iTerm.app" }), way({ TERM: "xterm-kitty", TMUX: "1" }), way({ TERM: "xterm" })]).toEqual(["kitty", "iterm", "none", "none"]);
    expect(new Pictures("m", "kitty", folder).shown({ mime: "image/png", content: png }, 1)).toBe(`\x1b_Ga=T,f=100,q=2,m=0;${png.toString("base64")}\x1b\\\n`);
  });
});

describe("history", () => {
  it("is kept for the next prompt, and for nobody else", () => {
    const path = join(folder, "deep", "h.jsonl");
    const history = new History(path);
    for (const text of ["a", "b\nc", "b\nc"]) history.add(text);
    expect(new History(path).entries).toEqual(["a", "b\nc"]);
    expect(readFileSync(path, "utf8")).toBe('"a"\n"b\\nc"\n');
  });

  it("leaves out what is no entry", () => {
    const path = join(folder, "h.jsonl");
    writeFileSync(path, '"a"\n{half\n3\n"b"\n');
    expect(new History(path).entries).toEqual(["a", "b"]);
  });
});

describe("a cursor file", () => {
  const opened = (identity: string): CursorFile => new CursorFile(openSync(join(folder, "c"), "r+"), join(folder, "c"), identity);

  it("remembers where to go on, and whether a line is open", () => {
    writeFileSync(join(folder, "c"), "");
    const file = opened("m, created 1");
    expect(file.cursor).toBeUndefined();
    file.remember(41, true);
    expect([opened("m, created 1").cursor, opened("m, created 1").open]).toEqual([41, true]);
  });

  it("belongs to one machine", () => {
    writeFileSync(join(folder, "c"), "");
    opened("m, created 1");
    expect(() => opened("m, created 2")).toThrow(`${join(folder, "c")} remembers the place in another machine (m, created 1): take another file, or delete it`);
  });

  it("is no other file", () => {
    writeFileSync(join(folder, "c"), "mine");
    expect(() => opened("m")).toThrow("is something else than a cursor file: take another name");
  });
});

describe("the prompt's own words", () => {
  it("are known with one word behind them at most", () => {
    expect([commandOf("%fork b")?.word, commandOf("%fork a b"), commandOf("%timeit x"), commandOf("x"), commandOf("constructor")]).toEqual(["b", undefined, undefined, undefined, undefined]);
  });
});

describe("completion", () => {
  const from = (matches: string[], start: number) => () => Promise.resolve({ matches, start, end: 0, busy: false });

  it("inserts the one there is", async () => {
    expect(await complete(from(["value"], 6), "print(va", 8)).toEqual({ start: 6, insert: "value", choices: "" });
  });

  it("inserts what all begin with, and then shows them", async () => {
    expect(await complete(from(["alpha", "alps"], 0), "a", 1)).toEqual({ start: 0, insert: "alp", choices: "" });
    expect(await complete(from(["alpha", "alps"], 0), "alp", 3)).toEqual({ start: 0, insert: undefined, choices: "alpha  alps\n" });
  });

  it("counts letters as Python does", async () => {
    expect((await complete(from(["value"], 4), "'😀'+va", 6)).start).toBe(5);
  });

  it("knows the prompt's own words", async () => {
    expect((await complete(from([], 0), "%he", 3)).insert).toBe("%help");
  });

  it("is silent where the machine is", async () => {
    expect(await complete(() => Promise.reject(new Error("away")), "a", 1)).toEqual({ start: 1, insert: undefined, choices: "" });
  });
});
