import { describe, expect, it } from "vitest";

import { shortNumber } from "../../src/cli/numbers.js";
import { printable, quotedText } from "../../src/quoting.js";
import { dumps, float, spelled } from "../../src/cli/spelling.js";

describe("Python's spelling", () => {
  it.each([
    ["abc", "'abc'"],
    ["it's", `"it's"`],
    [`it's "so"`, `'it\\'s "so"'`],
    ["a\nb\t\x07", "'a\\nb\\t\\x07'"],
    ["a\\b", "'a\\\\b'"],
    ["é\u200b\u{e0001}", "'é\\u200b\\U000e0001'"],
  ])("of the string %j is %s", (text, expected) => {
    expect(quotedText(text)).toBe(expected);
  });

  it.each([[1, "1.0"], [0.5, "0.5"], [1e16, "1e+16"], [1e-7, "1e-07"], [123456789012, "123456789012.0"], [NaN, "nan"], [-Infinity, "-inf"], [1e22, "1e+22"], [0, "0.0"]])(
    "of the float %d is %s",
    (value, expected) => {
      expect(float(value)).toBe(expected);
    },
  );

  it("of other values is str()'s", () => {
    expect(spelled(["a", 1, null, true])).toBe("['a', 1, None, True]");
    expect(spelled({ a: [1] })).toBe("{'a': [1]}");
    expect([spelled(1, "cpus"), spelled(1, "memory_mb")]).toEqual(["1.0", "1"]);
  });

  it("of JSON escapes what is not ASCII, and has a point in floats of the wire alone", () => {
    expect(dumps({ cpus: 1, memory_mb: 1, name: "é😀\u007f" })).toBe('{"cpus": 1.0, "memory_mb": 1, "name": "\\u00e9\\ud83d\\ude00\u007f"}');
    expect(dumps({ detail: { cpus: 1 } })).toBe('{"detail": {"cpus": 1}}');
  });

  it("of JSON for people has one space for each level", () => {
    expect(dumps({ a: [1, { b: null }], c: [], d: {} }, 1)).toBe('{\n "a": [\n  1,\n  {\n   "b": null\n  }\n ],\n "c": [],\n "d": {}\n}');
  });

  it("shows what a terminal would obey", () => {
    expect(printable("a\x1b[2Jb\u202ec\u00a0d")).toBe("a\\x1b[2Jb\\u202ec\\xa0d");
  });

  it.each([[1e6, "1e+06"], [-2, "-2"], [0.00001, "1e-05"], [1234567, "1.23457e+06"], [0.25, "0.25"]])("of %d in a sentence is %s", (value, expected) => {
    expect(shortNumber(value)).toBe(expected);
  });
});
