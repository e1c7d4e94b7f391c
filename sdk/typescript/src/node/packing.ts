/** A folder of this computer as an archive. */

import { lstat, open, readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";

import type { LocalFile } from "../disk.js";
import { InvalidInput } from "../generated/errors.js";
import { say } from "../sentences.js";
import { BLOCK_BYTES, headerBytes, padding } from "./tar.js";

const CHUNK_BYTES = 256 * 1024;

/** What lies in it, with names relative to it. Sockets, pipes and devices have nothing to carry over, and are left out. */
export async function pack(folder: string, into: LocalFile): Promise<void> {
  const isFolder = await stat(folder).then((status) => status.isDirectory(), () => false);
  if (!isFolder) throw new InvalidInput(say("not_a_folder", { path: folder }));
  const writer = new Writer(into);
  await packFolder(writer, folder, "");
  await writer.add(new Uint8Array(2 * BLOCK_BYTES));
  await writer.flush();
}

async function packFolder(writer: Writer, folder: string, name: string): Promise<void> {
  for (const entry of (await readdir(folder)).sort()) {
    const [place, inside] = [join(folder, entry), name === "" ? entry : `${name}/${entry}`];
    if (await packOne(writer, place, inside)) await packFolder(writer, place, inside);
  }
}

/** Is it a folder, whose content is to follow? */
async function packOne(writer: Writer, place: string, name: string): Promise<boolean> {
  const status = await lstat(place);
  const common = { name, size: 0, mode: status.mode & 0o7777, mtime: Math.floor(status.mtimeMs / 1000), to: "" };
  if (status.isSymbolicLink()) await writer.add(headerBytes({ ...common, kind: "link", to: await readlink(place) }));
  else if (status.isDirectory()) await writer.add(headerBytes({ ...common, kind: "folder" }));
  else if (status.isFile()) {
    await writer.add(headerBytes({ ...common, kind: "file", size: status.size }));
    await packContent(writer, place, status.size);
  }
  return status.isDirectory();
}

/** Exactly as much as was promised, though the file may change meanwhile. */
async function packContent(writer: Writer, place: string, size: number): Promise<void> {
  const file = await open(place, "r");
  try {
    for (let left = size; left > 0; ) {
      const { buffer, bytesRead } = await file.read(new Uint8Array(Math.min(left, CHUNK_BYTES)));
      const chunk = bytesRead === 0 ? new Uint8Array(buffer.length) : buffer.subarray(0, bytesRead);
      await writer.add(chunk);
      left -= chunk.length;
    }
  } finally {
    await file.close();
  }
  await writer.add(new Uint8Array(padding(size)));
}

/** Many small things, written together. */
class Writer {
  #parts: Uint8Array[] = [];
  #size = 0;

  constructor(private readonly file: LocalFile) {}

  async add(bytes: Uint8Array): Promise<void> {
    this.#parts.push(bytes);
    this.#size += bytes.length;
    if (this.#size >= CHUNK_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    const all = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#size = 0;
    await this.file.write(all);
  }
}
