/** The entries of an archive, one after another. */

import type { LocalFile } from "../disk.js";
import { BLOCK_BYTES, BadArchive, extended, headerOf, padding, type Header } from "./tar.js";

const CHUNK_BYTES = 256 * 1024;
const NAME_BYTES_MAX = 1024 * 1024; // of a header that is longer than a block; names are a few thousand at most

export class ArchiveReader {
  #at = 0; // the next thing that was not read yet
  #next = 0; // the next header
  #left = 0; // of the content of the entry that was read last

  constructor(private readonly file: LocalFile) {}

  /** null behind the last. Throws BadArchive. */
  async next(): Promise<Header | null> {
    let said: Partial<Header> = {};
    for (;;) {
      const header = await this.#header();
      if (header === null) return null;
      if (header.kind === "extended") said = { ...said, ...extended(await this.#whole(header)) };
      else if (header.kind === "long name") said = { ...said, name: ended(await this.#whole(header)) };
      else if (header.kind === "long link") said = { ...said, to: ended(await this.#whole(header)) };
      else if (header.kind !== "global") return await this.#entry({ ...header, ...said });
      this.#at = this.#next;
    }
  }

  async #header(): Promise<Header | null> {
    this.#at = this.#next;
    const bytes = await this.#read(BLOCK_BYTES);
    if (bytes.length === 0 && this.#at > 0) return null; // whoever wrote it did without the blocks of zeros at its end
    if (bytes.length < BLOCK_BYTES) throw new BadArchive("it ends in the middle of a header");
    const header = headerOf(bytes);
    if (header !== null) this.#next = this.#at + header.size + padding(header.size);
    return header;
  }

  /** The extended header may have another size than the field has room for. */
  async #entry(header: Header): Promise<Header> {
    const size = header.kind === "file" ? header.size : 0;
    if (this.#at + size > (await this.file.size())) throw new BadArchive("it ends in the middle of a file");
    this.#left = size;
    this.#next = this.#at + size + padding(size);
    return { ...header, size };
  }

  /** Of the entry that `next` gave last. */
  async *content(): AsyncGenerator<Uint8Array, void, undefined> {
    while (this.#left > 0) {
      const chunk = await this.#read(Math.min(this.#left, CHUNK_BYTES));
      if (chunk.length === 0) throw new BadArchive("it ends in the middle of a file");
      this.#left -= chunk.length;
      yield chunk;
    }
  }

  async #whole(header: Header): Promise<Uint8Array> {
    if (header.size > NAME_BYTES_MAX) throw new BadArchive("a name is far too long");
    const bytes = await this.#read(header.size);
    if (bytes.length < header.size) throw new BadArchive("it ends in the middle of a name");
    return bytes;
  }

  async #read(bytes: number): Promise<Uint8Array> {
    const found = await this.file.read(this.#at, bytes);
    this.#at += found.length;
    return found;
  }
}

function ended(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8").replace(/\0.*$/s, "");
}
