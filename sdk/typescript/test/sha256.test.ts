import { createHash } from "node:crypto";

import { expect, test } from "vitest";

import { sha256 } from "../src/sha256.js";

test("is what everybody has, at every length around its blocks and in any letters", () => {
  const lengths = [...Array(200).keys(), 1000, 65_535, 1_000_003];
  for (const text of [...lengths.map((length) => "é".repeat(length >> 1) + "a".repeat(length & 1)), "\u{1f600}", "\0".repeat(64)]) {
    expect(sha256(text)).toBe(createHash("sha256").update(text).digest("hex"));
  }
});
