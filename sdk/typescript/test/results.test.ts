/** What an instruction wrote and how it ended, from entries of the tape. */

import { describe, expect, test } from "vitest";

import type { Entry } from "../src/generated/entries.js";
import { InstructionFailed } from "../src/generated/errors.js";
import { Display, Gathering, Line, OUTPUT_CHARACTERS_MAX, Result, behind, linesOf, mimeBundle } from "../src/results.js";

const place = { instruction: 0, seq: 0 };
const output = (position: number, lines: string[], more: object = {}): Entry =>
  ({ type: "output", ...place, position, cursor: position + lines.length - 1, stream: "stdout", lines, ...more }) as unknown as Entry;
const ended = (more: object = {}): Entry => ({ type: "ended", ...place, position: 90, cursor: 90, end: "value", runtime_ms: 5, ...more }) as unknown as Entry;

describe("behind a position", () => {
  test("an entry that was seen is nothing, and of one that was seen in part the rest", () => {
    const entry = output(3, ["a", "b", "c"]);
    expect(behind(entry, 5)).toBeNull();
    expect(behind(entry, 9)).toBeNull();
    expect(behind(ended(), 90)).toBeNull();
    expect(behind(entry, 2)).toBe(entry);
    expect(behind(entry, 3)).toMatchObject({ position: 4, cursor: 5, seq: 1, lines: ["b", "c"] });
  });
});

describe("a result", () => {
  function gathered(...entries: Entry[]): Result {
    const gathering = new Gathering(0);
    for (const entry of entries) gathering.take(entry);
    if (gathering.result === null) throw new Error("it has not ended");
    return gathering.result;
  }

  test("has both streams, what was shown, and the end", () => {
    const shown = { type: "displayed", ...place, position: 5, cursor: 5, data: { text: "t" } } as unknown as Entry;
    const result = gathered(output(0, ["a", "b"]), output(2, ["half"], { partial: true }), output(3, ["wrong"], { stream: "stderr" }), shown, ended({ value: "7" }));
    expect([result.stdout, result.stderr, result.value, result.ok]).toEqual(["a\nb\nhalf", "wrong\n", "7", true]);
    expect(result.displays).toEqual([new Display({ text: "t" })]);
    expect(result.text).toBe("a\nb\nhalf\nwrong\n7");
    expect(result.raiseForError()).toBe(result);
  });

  test("takes nothing of other instructions, and nothing behind its end", () => {
    expect(gathered(output(0, ["theirs"], { instruction: 1 }), ended(), output(91, ["late"]))).toMatchObject({ stdout: "" });
  });

  test("that is no value is thrown when that is wanted, with itself", () => {
    const result = gathered(ended({ end: "error", error: "ValueError: x", traceback: "Traceback\nValueError: x\n" }));
    expect(result.text).toBe("Traceback\nValueError: x");
    expect(() => result.raiseForError()).toThrow(InstructionFailed);
    expect(() => result.raiseForError()).toThrow("ValueError: x");
  });

  test("keeps no more than a client's memory bears, and says so", () => {
    const long = "x".repeat(OUTPUT_CHARACTERS_MAX / 4);
    const result = gathered(output(0, [long, long, long]), output(3, [long]), output(4, ["after it"]), ended());
    expect(result.truncated).toBe(true);
    expect(result.stdout.length).toBe(3 * (long.length + 1));
  });
});

test("a line knows where it came from, and only the last one of an output may go on", () => {
  const entry = output(7, ["a", "b"], { partial: true, stream: "stderr" }) as Extract<Entry, { type: "output" }>;
  expect(linesOf(entry)).toEqual([new Line("a", "stderr", false, 0, 7), new Line("b", "stderr", true, 0, 8)]);
  expect(linesOf(entry).map((line) => `${line.toString()}${line.end}`).join("")).toBe("a\nb");
});

test("a picture is bytes, and what is none is null", () => {
  expect(new Display({ png: btoa("\x89PNG") }).png).toEqual(Uint8Array.of(0x89, 0x50, 0x4e, 0x47));
  for (const data of [{}, { png: "***" }, { png: 7 }]) expect(new Display(data).png).toBeNull();
  expect(mimeBundle({ png: "x", text: "y", "application/x": 1, html: null })).toEqual({ "image/png": "x", "text/plain": "y", "application/x": 1 });
});
