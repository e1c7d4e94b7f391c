import { describe, expect, it } from "vitest";

import { near } from "../../src/cli/closeness.js";
import { permissions } from "../../src/cli/machine/files/list.js";
import { suggestion } from "../../src/cli/names.js";
import { amongWords } from "./kit/refusals.js";
import { moment, plain, size, table } from "../../src/cli/tables.js";

describe("a table", () => {
  it("has columns as wide as their widest cell, and no space at the end", () => {
    const strong = (text: string): string => `<${text}>`;
    expect(table(["NAME", "X"], [["first", 1], ["a", null]], strong)).toEqual(["<NAME   X>", "first  1", "a      -"]);
  });

  it("has nothing in a cell that a terminal would obey", () => {
    expect(plain("a\x1b]0;title\x07b\nc")).toBe("a\\x1b]0;title\\x07b\\nc".replace("\\n", "\\x0a"));
  });

  it("shows tags so that none can look like two", () => {
    expect(plain({ team: "red", "a b": 'x y="1"', n: 3, l: ["é"] })).toBe('team=red "a b"="x y=\\"1\\"" n=3 l=["é"]');
  });
});

it.each([[999, "999 B"], [1000, "1.0 kB"], [1234567, "1.2 MB"], [2.5e9, "2.5 GB"], [9e15, "9000.0 TB"]])("%d bytes are %s", (count, text) => {
  expect(size(count)).toBe(text);
});

it("a moment is shown to the second", () => {
  expect([moment("2030-01-31T12:00:00.123Z"), moment(null), moment("soon")]).toEqual(["2030-01-31T12:00:00Z", "-", "soon"]);
});

it.each([[0o755, "rwxr-xr-x"], [0o4755, "rwsr-xr-x"], [0o1777, "rwxrwxrwt"], [0o2640, "rw-r-S---"], [0, "---------"]])("the mode %d is %s", (mode, text) => {
  expect(permissions(mode)).toBe(text);
});

describe("near words", () => {
  it("are those that difflib finds", () => {
    expect(near("bogus", ["logs", "new", "list"])).toEqual(["logs"]);
    expect(near("--nam", ["--name", "--tag", "--env", "--json"])).toEqual(["--name", "--tag", "--env"].filter((word) => near("--nam", [word]).length > 0));
  });

  it("are named in the sentence, or how to see all", () => {
    expect(suggestion("frist", ["first", "second"])).toBe("; did you mean first?");
    expect(suggestion("zzz", ["first"])).toBe("; `everforge machine list` shows those there are");
  });
});

it("a word that is none of the choices is refused with all of them", () => {
  expect(amongWords(["a", "b"], "--x", "c")).toBe("invalid value for --x: 'c' is none of a, b: see `everforge --help`");
});
