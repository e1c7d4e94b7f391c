/** Files of this computer to a machine and back. */

import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Everforge, errors, type Files } from "../src/index.js";
import { makeFolder } from "../src/node/folders.js";
import { FakeServer } from "./kit/fakeserver.js";
import { Speaker, say } from "./kit/speaker.js";

let server: FakeServer;
let client: Everforge;
let files: Files;
let folder: string;
beforeAll(async () => {
  server = await FakeServer.start();
  client = new Everforge({ token: server.token, base_url: server.url });
  ({ files } = await client.create());
});
afterAll(async () => {
  await client.close();
  await server.stop();
});
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "ef-files-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const BYTES = Uint8Array.from({ length: 1_500_001 }, (_, i) => i % 251);

test("a file goes there and comes back, and who wants to know is told how far it is", async () => {
  writeFileSync(join(folder, "here"), BYTES);
  const told: number[] = [];
  const progress = (done: number, total: number | null): void => {
    told.push(done);
    expect(total).toBe(BYTES.length);
  };
  expect((await files.upload(join(folder, "here"), "data/there", { progress })).size_bytes).toBe(BYTES.length);
  expect(told.at(-1)).toBe(BYTES.length);
  expect(await files.download("data/there", pathToFileURL(join(folder, "back")))).toBe(BYTES.length);
  expect(readFileSync(join(folder, "back")).equals(BYTES)).toBe(true);
  expect(Buffer.from(await files.read("data/there")).equals(BYTES)).toBe(true);
  const tail: Uint8Array[] = [];
  for await (const chunk of files.stream("data/there", { start: BYTES.length - 5 })) tail.push(chunk);
  expect(Buffer.concat(tail)).toEqual(Buffer.from(BYTES.slice(-5)));
});

test("what is no file is never replaced by one", async () => {
  await files.write("came", "from the machine");
  execFileSync("mkfifo", [join(folder, "pipe")]);
  symlinkSync("pipe", join(folder, "link"));
  symlinkSync("/proc/self/exe", join(folder, "opened")); // as /dev/stdout is
  for (const name of ["pipe", "link", "opened"]) {
    await expect(files.download("came", join(folder, name))).rejects.toMatchObject({ code: "EEXIST", path: join(folder, name) });
  }
  expect(readdirSync(folder).sort()).toEqual(["link", "opened", "pipe"]);
  expect(lstatSync(join(folder, "pipe")).isFIFO()).toBe(true);
});

test("a file that cannot be made has the name that it was given", async () => {
  await files.write("came", "from the machine");
  mkdirSync(join(folder, "taken"));
  for (const [name, code] of [["no/where", "ENOENT"], ["taken", "EISDIR"]] as const) {
    await expect(files.download("came", join(folder, name))).rejects.toMatchObject({ code, path: join(folder, name) });
  }
  expect(readdirSync(folder)).toEqual(["taken"]);
});

test("folders are made one by one, and the one that cannot be made says why", () => {
  makeFolder(join(folder, "a", "b", "c"), 0o700);
  makeFolder(join(folder, "a", "b", "c"));
  expect(["a", "a/b", "a/b/c"].map((path) => lstatSync(join(folder, path)).mode & 0o777)).toEqual([0o700, 0o700, 0o700]);
  writeFileSync(join(folder, "file"), "");
  const said = (path: string): unknown => {
    try {
      makeFolder(path);
      return null;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    }
  };
  expect([join(folder, "file"), join(folder, "file", "x", "y"), "/proc/1/x/y"].map(said)).toEqual(["EEXIST", "ENOTDIR", "ENOENT"]);
});

test("a folder goes there and comes back", async () => {
  mkdirSync(join(folder, "here", "deep"), { recursive: true });
  writeFileSync(join(folder, "here", "deep", "é.txt"), "text");
  writeFileSync(join(folder, "here", "one"), "1");
  expect((await files.uploadFolder(join(folder, "here"), "copied")).files).toBe(2);
  expect(await files.readText("copied/deep/é.txt")).toBe("text");
  expect(await files.downloadFolder("copied", join(folder, "back"))).toBe(2);
  expect(readFileSync(join(folder, "back", "deep", "é.txt"), "utf8")).toBe("text");
});

test("whatever has bytes can be written", async () => {
  async function* parts(): AsyncGenerator<Uint8Array | string> {
    yield "a";
    yield await Promise.resolve(Uint8Array.of(98));
  }
  for (const content of ["ab", Uint8Array.of(97, 98), Uint8Array.of(97, 98).buffer, new Blob(["ab"]), parts()]) {
    await files.write("written", content);
    expect(await files.readText("written")).toBe("ab");
  }
  await expect(files.write("written", 7 as never)).rejects.toThrow(errors.InvalidInput);
});

test("a download that fails leaves nothing behind, and what was there before as it was", async () => {
  writeFileSync(join(folder, "kept"), "before");
  await expect(files.download("nowhere", join(folder, "kept"))).rejects.toThrow(errors.FileNotFound);
  expect(readdirSync(folder)).toEqual(["kept"]);
  expect(readFileSync(join(folder, "kept"), "utf8")).toBe("before");
});

test("a download that is cut begins anew, and is whole", async () => {
  let times = 0;
  const speaker = await Speaker.start((_request, response) => {
    if (++times > 1) say(response, "whole");
    else response.writeHead(200, { "content-length": "5" }).write("who", () => response.socket?.destroy());
  });
  try {
    expect(await speaker.client({ retry_seconds: 5 }).machine("m").files.download("x", join(folder, "made"))).toBe(5);
    expect(readFileSync(join(folder, "made"), "utf8")).toBe("whole");
    expect(readdirSync(folder)).toEqual(["made"]);
  } finally {
    await speaker.stop();
  }
});

test("an upload that the server refuses in the middle is told why, though not all of it was sent", async () => {
  writeFileSync(join(folder, "here"), BYTES);
  const speaker = await Speaker.start((_request, response) => say(response, { code: "TooLarge", message: "it is too large" }, 413));
  try {
    await expect(speaker.client().machine("m").files.upload(join(folder, "here"), "there")).rejects.toThrow("it is too large");
  } finally {
    await speaker.stop();
  }
});
