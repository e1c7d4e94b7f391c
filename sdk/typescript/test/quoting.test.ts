/** What was given, in sentences, and words that are not UTF-8. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { checkUtf8 } from "../src/cli/utf8.js";
import { WrongUsage } from "../src/cli/wrongusage.js";
import { quoted } from "../src/quoting.js";

describe("what somebody gave", () => {
  it("is shown with nothing that a terminal would obey", () => {
    expect(quoted("it's \u001b\u202e\u00a0")).toBe(`"it's \\x1b\\u202e\\xa0"`);
    expect(quoted("\ud800")).toBe("'\\ud800'");
    expect(quoted({ a: 1 })).toBe(`'{"a":1}'`);
  });

  it("is short, counted in characters", () => {
    expect(quoted("😀".repeat(78))).toBe(`'${"😀".repeat(78)}'`);
    expect(quoted("😀".repeat(79))).toBe(`'${"😀".repeat(76)}...`);
  });
});

describe("words with U+FFFD", () => {
  let folder = "";
  let typed = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "everforge-"));
    typed = join(folder, "cmdline");
    writeFileSync(typed, Buffer.concat([Buffer.from("node\0main.js\0a\ufffd\0b"), Buffer.from([0xff, 0])]));
  });
  afterAll(() => { rmSync(folder, { recursive: true }); });

  it("are what was typed, or stand for bytes that were", () => {
    expect(() => { checkUtf8(["plain", "a\ufffd"], typed); }).toThrow(WrongUsage);
    expect(() => { checkUtf8(["main.js", "a\ufffd", "b\ufffd"], typed); }).toThrow("'b\ufffd' is not UTF-8");
    expect(() => { checkUtf8(["a\ufffd", "b"], typed); }).not.toThrow();
  });

  it("are refused where nobody tells", () => {
    expect(() => { checkUtf8(["a\ufffd"], join(folder, "nothing")); }).toThrow("'a\ufffd' is not UTF-8");
    expect(() => { checkUtf8(["a"], join(folder, "nothing")); }).not.toThrow();
  });
});
