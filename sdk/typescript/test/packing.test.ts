/** Folders as archives, and back. Those that come from a machine may be anyone's. */

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { LocalFile } from "../src/disk.js";
import { ArchiveRefused, InvalidInput } from "../src/generated/errors.js";
import { nodeDisk } from "../src/node/disk.js";
import { headerBytes, padding, type Kind } from "../src/node/tar.js";
import { PYTHON } from "./kit/python.js";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "ef-packing-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Made = readonly [name: string, kind: Kind, content: string]; // its content, or where it leads

/** As a hostile machine would write it. */
async function archive(entries: readonly Made[], change: (bytes: Buffer) => Buffer = (bytes) => bytes): Promise<LocalFile> {
  const parts = entries.flatMap(([name, kind, content]) => {
    const isLink = kind === "link" || kind === "hard link";
    const data = Buffer.from(isLink ? "" : content);
    const header = Buffer.from(headerBytes({ name, kind, size: data.length, mode: 0o644, mtime: 1000, to: isLink ? content : "" }));
    if (kind === "hard link" || kind === "other") relabel(header, kind === "other" ? "6" : "1");
    return [header, data, Buffer.alloc(padding(data.length))];
  });
  const file = await nodeDisk.temporary();
  await file.write(change(Buffer.concat([...parts, Buffer.alloc(1024)])));
  return file;
}

/** With another letter for its kind, and the sum that goes with it. */
function relabel(header: Buffer, letter: string): void {
  header.write(letter, 156, "latin1");
  const sum = header.reduce((sofar, one, at) => sofar + (at >= 148 && at < 156 ? 0x20 : one), 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
}

async function unpacked(entries: readonly Made[], change?: (bytes: Buffer) => Buffer): Promise<number> {
  const file = await archive(entries, change);
  try {
    return await nodeDisk.unpack(file, join(folder, "target"));
  } finally {
    await file.close();
  }
}

async function withTemporary<T>(act: (file: LocalFile) => Promise<T>): Promise<T> {
  const file = await nodeDisk.temporary();
  try {
    return await act(file);
  } finally {
    await file.close();
  }
}

function someFolder(): string {
  const source = join(folder, "source");
  mkdirSync(join(source, "a", "b"), { recursive: true });
  mkdirSync(join(source, "empty"));
  writeFileSync(join(source, "a", "b", "run.sh"), "echo");
  chmodSync(join(source, "a", "b", "run.sh"), 0o755);
  writeFileSync(join(source, "é".repeat(90)), "long name");
  writeFileSync(join(source, "large"), Buffer.alloc(700_001, 7));
  writeFileSync(join(source, "nothing"), "");
  symlinkSync("../a/b/run.sh", join(source, "a", "link"));
  return source;
}

function checkCopy(target: string): void {
  expect(statSync(join(target, "a/b/run.sh")).mode & 0o777).toBe(0o755);
  expect(readFileSync(join(target, "é".repeat(90)), "utf8")).toBe("long name");
  expect(readFileSync(join(target, "large")).equals(Buffer.alloc(700_001, 7))).toBe(true);
  expect(readlinkSync(join(target, "a/link"))).toBe("../a/b/run.sh");
  expect(readdirSync(join(target, "empty"))).toEqual([]);
  expect(Math.floor(statSync(join(target, "large")).mtimeMs / 1000)).toBe(Math.floor(statSync(join(folder, "source/large")).mtimeMs / 1000));
}

describe("a folder", () => {
  test("comes back as it was", async () => {
    const target = join(folder, "target");
    const files = await withTemporary(async (file) => {
      await nodeDisk.pack(someFolder(), file);
      return await nodeDisk.unpack(file, target);
    });
    expect(files).toBe(5);
    checkCopy(target);
  });

  test("is read by Python's tarfile, and what that writes is read here", async () => {
    const [source, ours, theirs, copy] = [someFolder(), "ours.tar", "theirs.tar", "copy"].map((name) => (name.startsWith("/") ? name : join(folder, name)));
    await withTemporary(async (file) => {
      await nodeDisk.pack(String(source), file);
      writeFileSync(String(ours), await file.read(0, await file.size()));
    });
    const program = `
import sys, tarfile
ours, copy, theirs, form = sys.argv[1:]
tarfile.open(ours).extractall(copy, filter="data")
with tarfile.open(theirs, "w", format=getattr(tarfile, form)) as made:
    made.add(copy, arcname=".")
`;
    for (const form of ["PAX_FORMAT", "GNU_FORMAT"]) {
      execFileSync(PYTHON, ["-c", program, String(ours), String(copy), String(theirs), form]);
      checkCopy(String(copy));
      const file = await nodeDisk.open(String(theirs));
      expect(await nodeDisk.unpack(file, join(folder, form))).toBe(5);
      await file.close();
      checkCopy(join(folder, form));
    }
  });

  test("that is none is not packed", async () => {
    await withTemporary(async (file) => {
      await expect(nodeDisk.pack(join(folder, "nowhere"), file)).rejects.toThrow(InvalidInput);
    });
  });
});

describe("an archive", () => {
  const hostile: readonly (readonly Made[])[] = [
    [["../x", "file", "bad"]],
    [["/tmp/x", "file", "bad"]],
    [["a/../../x", "file", "bad"]],
    [["l", "link", "/etc"]],
    [["l", "link", ".."]],
    [["l", "link", ""]],
    [["a", "folder", ""], ["a/l", "link", "../.."]],
    [["d", "folder", ""], ["l", "link", "d/../.."]],
    [["d/e", "folder", ""], ["d/l", "link", "e/.."], ["x", "link", "d/l/../.."]],
    [["h", "hard link", "../secret"]],
    [["h", "hard link", "/etc/passwd"]],
    [["l", "link", "h"], ["h", "hard link", "l"]],
    [["pipe", "other", ""]],
    [["", "file", "bad"]],
    [["é".repeat(60) + "/../../../x", "file", "bad"]], // in an extended header
  ];
  test.each(hostile.map((entries) => [JSON.stringify(entries.map(([name, kind, to]) => [name.slice(0, 20), kind, to])), entries] as const))(
    "lands and leads nowhere else: %s",
    async (_, entries) => {
      await expect(unpacked(entries)).rejects.toThrow(ArchiveRefused);
      expect(readdirSync(folder)).toEqual(["target"]);
    },
  );

  test("has links that stay links, and second names with the same content", async () => {
    expect(await unpacked([["d/f", "file", "hi"], ["d/l", "link", "../d/f"], ["h", "hard link", "d/f"], ["d/l", "file", "in place"]])).toBe(4);
    const read = (name: string): string => readFileSync(join(folder, "target", name), "utf8");
    expect([read("h"), read("d/f"), read("d/l")]).toEqual(["hi", "hi", "in place"]);
  });

  test("leads nowhere else through a link that was in the folder before", async () => {
    const [target, elsewhere] = [join(folder, "target"), join(folder, "elsewhere")];
    mkdirSync(target);
    mkdirSync(elsewhere);
    symlinkSync(elsewhere, join(target, "out"));
    await expect(unpacked([["out/x", "file", "bad"]])).rejects.toThrow(ArchiveRefused);
    await expect(unpacked([["l", "link", "out/secret"]])).rejects.toThrow(ArchiveRefused);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(lstatSync(join(target, "l"), { throwIfNoEntry: false })).toBeUndefined();
  });

  test("that is nonsense, or not whole, is refused with a sentence", async () => {
    const changes: ((bytes: Buffer) => Buffer)[] = [
      () => Buffer.alloc(2048, 7),
      () => Buffer.from("short"),
      (bytes) => bytes.subarray(0, 700),
      (bytes) => Buffer.concat([bytes.subarray(0, 100), Buffer.from("x"), bytes.subarray(101)]),
    ];
    for (const change of changes) await expect(unpacked([["f", "file", "x".repeat(600)]], change)).rejects.toThrow("the archive cannot be read: ");
  });

  test("with a name that never ends is not read into memory", async () => {
    await expect(unpacked([["x", "extended", "0".repeat(1024 * 1024 + 1)]])).rejects.toThrow("the archive cannot be read: a name is far too long");
  });
});

describe("a new file", () => {
  test("is there when it is whole, and not before", async () => {
    const target = join(folder, "made");
    const file = await nodeDisk.create(target);
    await file.write(Buffer.from("half"));
    expect(existsSync(target)).toBe(false);
    await file.clear();
    await file.write(Buffer.from("whole"));
    await file.keep();
    expect(readFileSync(target, "utf8")).toBe("whole");
    expect(readdirSync(folder)).toEqual(["made"]);
  });

  test("leaves nothing when it is discarded", async () => {
    const file = await nodeDisk.create(join(folder, "made"));
    await file.write(Buffer.from("half"));
    await file.discard();
    expect(readdirSync(folder)).toEqual([]);
  });
});
