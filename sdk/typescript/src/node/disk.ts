/** Files of this computer. What goes wrong with them is Node's own error, as anywhere in a program. */

import { randomBytes } from "node:crypto";
import { lstat, open, readlink, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import type { Disk, LocalFile, NewFile } from "../disk.js";
import { pack } from "./packing.js";
import { saidOf } from "./systemerror.js";
import { unpack } from "./unpacking.js";

export const nodeDisk: Disk = {
  open: async (path) => new OpenFile(await open(pathOf(path), "r")),
  create: async (path) => await PartialFile.create(pathOf(path)),
  temporary,
  pack: async (folder, into) => await pack(pathOf(folder), into),
  unpack: async (archive, into) => await unpack(archive, pathOf(into)),
};

function pathOf(path: string | URL): string {
  return typeof path === "string" ? path : fileURLToPath(path);
}

/** Nobody else can read it. */
async function temporary(): Promise<LocalFile> {
  const path = join(tmpdir(), `everforge-${randomBytes(8).toString("hex")}`);
  const handle = await open(path, "wx+", 0o600);
  try {
    await rm(path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return new OpenFile(handle);
}

class OpenFile implements LocalFile {
  #end = 0; // where the next chunk goes

  constructor(private readonly handle: FileHandle) {}

  async size(): Promise<number> {
    return (await this.handle.stat()).size;
  }

  async read(at: number, bytes: number): Promise<Uint8Array> {
    const { buffer, bytesRead } = await this.handle.read(new Uint8Array(bytes), 0, bytes, at);
    return buffer.subarray(0, bytesRead);
  }

  async write(chunk: Uint8Array): Promise<void> {
    for (let done = 0; done < chunk.length; ) {
      done += (await this.handle.write(chunk, done, chunk.length - done, this.#end + done)).bytesWritten;
    }
    this.#end += chunk.length;
  }

  async clear(): Promise<void> {
    await this.handle.truncate(0);
    this.#end = 0;
  }

  async close(): Promise<void> {
    await this.handle.close();
  }
}

/** Written beside the file that it becomes, of which whoever asked for it knows the name. */
class PartialFile extends OpenFile implements NewFile {
  private constructor(
    handle: FileHandle,
    private readonly partial: string,
    private readonly target: string,
  ) {
    super(handle);
  }

  static async create(target: string): Promise<PartialFile> {
    await checkReplaceable(target);
    const partial = join(dirname(target), `.${basename(target)}.${randomBytes(4).toString("hex")}.part`);
    return new PartialFile(await named(target, open(partial, "wx")), partial, target);
  }

  async keep(): Promise<void> {
    await this.close();
    await named(this.target, rename(this.partial, this.target));
  }

  async discard(): Promise<void> {
    await this.close().catch(() => undefined); // it may be closed already
    await rm(this.partial, { force: true });
  }
}

async function named<T>(target: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw saidOf(target, error as NodeJS.ErrnoException);
  }
}

/** A device or a pipe would be gone afterwards, and so would a name of what a process has open, as /dev/stdout is: a link into /proc. */
async function checkReplaceable(target: string): Promise<void> {
  let found;
  try {
    found = await lstat(target);
    if (found.isSymbolicLink() && !(await readlink(target)).startsWith("/proc/")) found = await stat(target);
  } catch {
    return; // there is none, or whoever writes it says what is wrong
  }
  if (!found.isFile() && !found.isDirectory()) throw saidOf(target, { code: "EEXIST", errno: -constants.errno.EEXIST, syscall: "open" });
}
