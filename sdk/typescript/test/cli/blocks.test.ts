import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { blocks, ends, indentation } from "../../src/cli/terminal/blocks.js";

interface Vector {
  text: string;
  complete: boolean;
}

const FILE = new URL("../../../contract/blocks.json", import.meta.url);
const VECTORS = JSON.parse(readFileSync(FILE, "utf8")) as Vector[];

describe("Enter", () => {
  it.each(VECTORS)("behind $text", ({ text, complete }) => {
    expect(ends(text)).toBe(complete);
  });
});

async function cut(text: string): Promise<string[]> {
  const found: string[] = [];
  for await (const block of blocks(text.split(/(?<=\n)/))) found.push(block);
  return found;
}

describe("a stream of lines", () => {
  it("is cut where a statement cannot go on", async () => {
    expect(await cut("x = 1\nfor i in x:\n    print(i)\n\n    print(2)\nelse:\n    y\nz\n")).toEqual([
      "x = 1\n",
      "for i in x:\n    print(i)\n\n    print(2)\nelse:\n    y\n",
      "z\n",
    ]);
  });

  it("keeps long strings and brackets whole, and leaves out what says nothing", async () => {
    expect(await cut("# remark\n\n'''a\n\nb'''\nf(1,\n2)\n# end\n")).toEqual(["# remark\n'''a\n\nb'''\n".replace("# remark\n", "# remark\n\n"), "f(1,\n2)\n"]);
  });

  it("gives a last line without its newline", async () => {
    expect(await cut("x\ny")).toEqual(["x\n", "y"]);
  });

  it("gives what was never finished, for the machine to refuse", async () => {
    expect(await cut("f(\n1")).toEqual(["f(\n1"]);
  });
});

it.each([["if x:", "    "], ["    return 1", ""], ["    y = 1", "    "], ["x  # why:", ""], ["    pass", ""], ["", ""]])("behind %j the next line begins with %j", (line, space) => {
  expect(indentation(line)).toBe(space);
});
