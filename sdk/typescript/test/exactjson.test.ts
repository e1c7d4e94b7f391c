/** JSON to the letter: what hashes of the audit log are made of must be spelled as the server spells it. */

import { execFileSync } from "node:child_process";

import { describe, expect, test } from "vitest";

import { ExactNumber, canonical, parseExactly } from "../src/exactjson.js";
import { PYTHON } from "./kit/python.js";

describe("reading", () => {
  test("gives what JSON.parse gives, where numbers are plain", () => {
    for (const text of ['{"a":[1,2,{"b":null}],"c":"\\u00e9\\n","d":true,"":-7}', "[]", "{}", '"x"', " [ 1 , 2 ] ", "0", "null"]) {
      expect(JSON.parse(JSON.stringify(parseExactly(text)))).toEqual(JSON.parse(text));
    }
  });

  test("keeps numbers that JavaScript would change as they were written", () => {
    const found = parseExactly('{"large":12345678901234567890,"small":1e-7,"whole":1.0,"minus":-0}') as Record<string, ExactNumber>;
    expect(Object.values(found).map((one) => one.text)).toEqual(["12345678901234567890", "1e-7", "1.0", "-0"]);
    expect(found["small"]?.valueOf()).toBe(1e-7);
  });

  test("takes no text that is no JSON", () => {
    for (const text of ["", "{", "[1,]", "{'a':1}", "01", "1 2", '"\t"', "nul", '{"a" 1}', '{"a":1,}', "[1 2]", "\\", '{a:1}', "NaN"]) {
      expect(() => parseExactly(text), text).toThrow(SyntaxError);
    }
  });

  test("lets a name be any name, and touches no prototype", () => {
    const found = parseExactly('{"__proto__":{"bad":1},"constructor":2}') as Record<string, unknown>;
    expect(Object.keys(found)).toEqual(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>)["bad"]).toBeUndefined();
  });

  test("ends where it is too deep, and does not fill the stack", () => {
    expect(() => parseExactly("[".repeat(100_000))).toThrow(SyntaxError);
    expect(() => parseExactly('{"a":'.repeat(100_000))).toThrow(SyntaxError);
  });
});

describe("writing", () => {
  test("spells what it has read as Python does, which the hashes are made with", () => {
    const program = `
import json, random, struct
random.seed(7)
numbers = [struct.unpack("d", random.randbytes(8))[0] for _ in range(2000)] + [random.uniform(-1e5, 1e5) for _ in range(2000)]
numbers += [random.randrange(-10**25, 10**25) for _ in range(500)] + [round(random.uniform(0, 100), 3) for _ in range(500)]
numbers += [0.0, -0.0, 1.0, 1e-4, 1e-5, 9.999e15, 1e16, 1e22, 5e-324, 2**53, -(2**53), 10**18]
texts = ["".join(chr(random.choice([random.randrange(32, 256), random.randrange(0x10000, 0x110000), random.randrange(0, 32)])) for _ in range(6)) for _ in range(300)]
given = {"numbers": [n for n in numbers if n == n and abs(n) != float("inf")], "texts": {text: text for text in texts}, "words": [True, False, None, [], {}]}
print(json.dumps(given, sort_keys=True, separators=(",", ":")))
`;
    const text = execFileSync(PYTHON, ["-c", program], { encoding: "utf8" }).trim();
    expect(canonical(parseExactly(text)) === text).toBe(true);
  });

  test("orders names by their characters and not by halves of them", () => {
    expect(canonical({ "\u{1f600}": 1, "\uffff": 2, a: 3 })).toBe('{"a":3,"\\uffff":2,"\\ud83d\\ude00":1}');
  });

  test("writes nothing that JSON has not", () => {
    for (const value of [NaN, Infinity, undefined, () => 1, Symbol("x"), 1n]) expect(() => canonical({ value })).toThrow(TypeError);
    const round: unknown[] = [];
    round.push(round);
    expect(() => canonical(round)).toThrow("too deep");
  });
});
