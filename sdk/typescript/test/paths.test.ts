/** A path of a file becomes part of an address, and leads nowhere else than it says. */

import { describe, expect, test } from "vitest";

import "../src/index.js";
import { checkUrl } from "../src/access.js";
import { InvalidInput } from "../src/generated/errors.js";
import { machineName } from "../src/inputs.js";
import { filePath, pathToDelete, segment } from "../src/paths.js";
import { WebTransport } from "../src/web/transport.js";

describe("paths of files", () => {
  test("that climb are spelled so that nobody on the way takes a step", () => {
    expect(filePath("../../etc/passwd")).toBe("%2E%2E/%2E%2E/etc/passwd");
    expect(filePath("./.hidden/a b?c#d%/é")).toBe("%2E/%2Ehidden/a%20b%3Fc%23d%25/%C3%A9");
    expect(filePath("/absolute")).toBe("/absolute");
  });

  test("that climb are not deleted", () => {
    for (const path of ["..", "a/../b", "./a", "a/."]) expect(() => pathToDelete(path), path).toThrow(InvalidInput);
    expect(pathToDelete("a/..b/...")).toBe("a/%2E%2Eb/%2E%2E%2E");
  });

  test("that are none are refused with a sentence", () => {
    for (const path of ["", "a\0b", undefined, 7, "half \ud800 of a pair"]) expect(() => filePath(path), String(path)).toThrow(InvalidInput);
  });

  test("are never asked for by a browser that would take the step", async () => {
    const asked = { method: "GET", headers: {}, content: null, silence_seconds: 1, signal: new AbortController().signal };
    for (const path of ["a/%2E%2E/b", "%2e", "x/..", "x/%2E."]) {
      await expect(new WebTransport().send({ ...asked, url: `http://127.0.0.1:1/v1/${path}` }), path).rejects.toThrow(InvalidInput);
    }
  });
});

test("a name is one part of an address", () => {
  expect(segment("a/b")).toBe("a%2Fb");
  for (const name of ["", ".", "..", 3]) expect(() => segment(name)).toThrow(InvalidInput);
});

test("a machine has the name of a machine", () => {
  expect(machineName("a-1")).toBe("a-1");
  for (const name of ["", "A", "-a", "a-", "../x", "a/b", "new", "list", "a".repeat(64), 5, null, "é"]) expect(() => machineName(name)).toThrow(InvalidInput);
});

test("an address is one of a server", () => {
  expect(checkUrl(" HTTPS://machines.example.org/below/ ")).toBe("https://machines.example.org/below");
  const none = ["", "example.org", "ftp://x", "http://", "http://user:pass@x", "http://x?y", "http://x#y", "http://x y", "http://[::1", "http://x/?", "http://x#"];
  const hosts = ["127.0.0.1%00:1", "a%41", "1.2.3.4.5", "256.1.1.1", "a^b", "a\tb", "a/x y", "[zz]"];
  for (const text of [...none, ...hosts.map((host) => `http://${host}`)]) {
    expect(() => checkUrl(text), text).toThrow(InvalidInput);
  }
});
