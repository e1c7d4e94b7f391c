import { describe, expect, it } from "vitest";

import { columns, draw } from "../../src/cli/terminal/drawing.js";
import { Editing } from "../../src/cli/terminal/editing.js";
import { Recall } from "../../src/cli/terminal/recall.js";

/** Text with | where the cursor is. */
function edited(marked: string, act: (editing: Editing) => void): string {
  const at = marked.indexOf("|");
  const editing = new Editing(marked.replace("|", ""), at);
  act(editing);
  return `${editing.before}|${editing.after}`;
}

describe("a key", () => {
  it.each<[string, string, (editing: Editing) => void, string]>([
    ["left over a letter of several parts", "a👩‍👩‍👧|b", (e) => { e.left(); }, "a|👩‍👩‍👧b"],
    ["right at the end", "ab|", (e) => { e.right(); }, "ab|"],
    ["up to a shorter line", "a\nlong|er", (e) => { e.up(); }, "a|\nlonger"],
    ["up to a longer line", "longer\nab|", (e) => { e.up(); }, "lo|nger\nab"],
    ["down to a shorter line", "long|er\na", (e) => { e.down(); }, "longer\na|"],
    ["to the start of the line", "x\nab|c", (e) => { e.lineStart(); }, "x\n|abc"],
    ["to the end of the line", "a|bc\nx", (e) => { e.lineEnd(); }, "abc|\nx"],
    ["a word to the left", "foo.bar |", (e) => { e.wordLeft(); }, "foo.|bar "],
    ["a word to the right", "|foo.bar", (e) => { e.wordRight(); }, "foo|.bar"],
    ["backspace over a newline", "a\n|b", (e) => { e.backspace(); }, "a|b"],
    ["delete", "a|bc", (e) => { e.delete(); }, "a|c"],
    ["delete to the line's end", "a|bc\nd", (e) => { e.deleteToLineEnd(); }, "a|\nd"],
    ["delete at the line's end", "a|\nd", (e) => { e.deleteToLineEnd(); }, "a|d"],
    ["delete to the line's start", "x\nab|c", (e) => { e.deleteToLineStart(); }, "x\n|c"],
    ["delete a word", "foo bar|", (e) => { e.deleteWord(); }, "foo |"],
  ])("%s", (_, before, act, after) => {
    expect(edited(before, act)).toBe(after);
  });
});

describe("history", () => {
  it("is walked by what stands there already, and back to it", () => {
    const recall = new Recall(["print(1)", "x = 1", "print(2)"]);
    expect(recall.older("pr", "pr")).toBe("print(2)");
    expect(recall.older("print(2)", "print(2)")).toBe("print(1)");
    expect(recall.older("print(1)", "print(1)")).toBeUndefined();
    expect(recall.newer("print(1)")).toBe("print(2)");
    expect(recall.newer("print(2)")).toBe("pr");
    expect(recall.newer("pr")).toBeUndefined();
  });
});

describe("the prompt is drawn", () => {
  it("over several lines", () => {
    expect(draw("if x:\n    y", 3, 80)).toEqual({ text: ">>> if x:\n...     y", row: 0, column: 7, below: 1 });
  });

  it("over the edge of the terminal", () => {
    expect(draw("abcdefghij", 10, 10)).toEqual({ text: ">>> abcdefghij", row: 1, column: 4, below: 0 });
    expect(draw("abcdef", 6, 10)).toMatchObject({ row: 1, column: 0, below: 0 });
  });

  it("without obeying what was pasted", () => {
    expect(draw("a\x1b[2Jb", 0, 80).text).toBe(">>> a?[2Jb");
  });

  it("with wide letters two columns wide", () => {
    expect([columns("日本"), columns("e\u0301"), columns("abc"), columns("😀")]).toEqual([4, 1, 3, 2]);
  });
});
