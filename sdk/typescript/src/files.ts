/** The files of a machine. Streams: neither side ever holds a whole file. */

import { decode } from "./decoding.js";
import type { Disk, LocalFile } from "./disk.js";
import { SLOW_SECONDS, type Door, type RequestOptions } from "./door.js";
import { EverforgeError } from "./error.js";
import type * as api from "./generated/api.js";
import { InvalidInput } from "./generated/errors.js";
import { checkText } from "./inputs.js";
import { filePath, pathToDelete } from "./paths.js";
import { platform, type Answer, type Content } from "./platform.js";
import { quoted } from "./quoting.js";
import { say } from "./sentences.js";

const CHUNK_BYTES = 256 * 1024;
const FILES_A_PAGE = 1000;

/** Told of bytes so far, and of how many, where that is known. */
export type Progress = (done: number, total: number | null) => unknown;
export interface TransferOptions extends RequestOptions {
  progress?: Progress | undefined;
}
/** What is read into memory before it is sent. */
export type FileContent = string | Uint8Array | ArrayBuffer | Blob | AsyncIterable<Uint8Array | string>;

/** Paths are relative to the machine's home folder, or absolute. */
export class Files {
  readonly #door: Door;
  readonly #path: string;

  /** @internal */
  constructor(door: Door, machinePath: string) {
    this.#door = door;
    this.#path = machinePath;
  }

  /** What lies in a folder, by name; pages by itself. */
  async *list(path = "", options: RequestOptions = {}): AsyncGenerator<api.File, void, undefined> {
    let after: string | null | undefined;
    do {
      const page: api.FileList = await this.#door.get("FileList", `${this.#path}/files`, { path, limit: FILES_A_PAGE, after }, options);
      yield* page.files;
      after = page.next;
    } while (after !== null);
  }

  /** The whole of it, in memory. `download` is for large ones. */
  async read(path: string, options: RequestOptions = {}): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const chunk of this.stream(path, options)) parts.push(chunk);
    return joined(parts);
  }

  async readText(path: string, encoding = "utf-8", options: RequestOptions = {}): Promise<string> {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(await this.read(path, options));
  }

  /** Its bytes as they come, from `start` on. */
  async *stream(path: string, options: RequestOptions & { start?: number | undefined } = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const answer = await this.#get(this.#url(path), options.start ?? 0, this.#door.joined(options.signal));
    try {
      yield* this.#body(answer);
    } finally {
      answer.close();
    }
  }

  /** Whole or not at all; folders on the way are made. */
  async write(path: string, content: FileContent, options: RequestOptions = {}): Promise<api.FileWritten> {
    const body = await bytesOf(content);
    // The same bytes to the same place: asking again is safe.
    const asking = { again: true, silence_seconds: SLOW_SECONDS, signal: options.signal };
    return decode("FileWritten", await this.#door.ask("PUT", this.#url(path), body, asking));
  }

  /** Whole or not at all; begins anew after a cut. `local` is a path, or in a browser a Blob, as an input for files has it. */
  async upload(local: string | URL | Blob, remote: string, options: TransferOptions = {}): Promise<api.FileWritten> {
    const url = this.#url(remote);
    if (local instanceof Blob) return decode("FileWritten", await this.#putBlob(url, local, options));
    const file = await (await disk()).open(local);
    try {
      return decode<api.FileWritten>("FileWritten", await this.#put(url, file, options));
    } finally {
      await file.close();
    }
  }

  /** Its size in bytes. The local file is there when it is whole, and not before. */
  async download(remote: string, local: string | URL, options: TransferOptions = {}): Promise<number> {
    const url = this.#url(remote);
    const file = await (await disk()).create(local);
    try {
      const size = await this.#fetch(url, file, options);
      await file.keep();
      return size;
    } catch (error) {
      await file.discard();
      throw error;
    }
  }

  async exists(path: string, options: RequestOptions = {}): Promise<boolean> {
    try {
      (await this.#get(this.#url(path), 0, this.#door.joined(options.signal))).close();
      return true;
    } catch (error) {
      if (!(error instanceof EverforgeError)) throw error;
      if (error.code === "FileNotFound") return false;
      if (error.code === "NotAFile") return true;
      throw error;
    }
  }

  /** A file or an empty folder; with `recursive` a folder and all that is in it. */
  async delete(path: string, options: RequestOptions & { recursive?: boolean | undefined } = {}): Promise<void> {
    await this.#door.delete(`${this.#path}/files/${pathToDelete(path)}`, { recursive: options.recursive === true ? true : null }, options);
  }

  // --- folders -----------------------------------------------------------------------------------------------------------------------------

  /** All that lies in a folder, unpacked over there whole or not at all. */
  async uploadFolder(local: string | URL, remote: string, options: TransferOptions = {}): Promise<api.Unpacked> {
    return await this.#withTemporary(async (here, file) => {
      await here.pack(local, file);
      return decode<api.Unpacked>("Unpacked", await this.#put(this.#archive(remote), file, options));
    });
  }

  /** How many files came. What would land outside the local folder is refused. */
  async downloadFolder(remote: string, local: string | URL, options: TransferOptions = {}): Promise<number> {
    return await this.#withTemporary(async (here, file) => {
      await this.#fetch(this.#archive(remote), file, options);
      return await here.unpack(file, local);
    });
  }

  async #withTemporary<T>(act: (here: Disk, file: LocalFile) => Promise<T>): Promise<T> {
    const here = await disk();
    const file = await here.temporary();
    try {
      return await act(here, file);
    } finally {
      await file.close();
    }
  }

  // --- one transfer ------------------------------------------------------------------------------------------------------------------------

  #url(path: string): string {
    return this.#door.url(`${this.#path}/files/${filePath(path)}`);
  }

  #archive(path: string): string {
    return this.#door.url(`${this.#path}/archive`, { path, format: "tar" });
  }

  async #get(url: string, start: number, signal: AbortSignal): Promise<Answer> {
    const headers: Record<string, string> = start > 0 ? { range: `bytes=${start}-` } : {};
    return await this.#door.patiently(() => this.#door.send("GET", url, headers, null, SLOW_SECONDS, signal), true, signal);
  }

  /** The same bytes to the same place: asking again is safe. */
  async #send(url: string, size: number, content: () => Content, options: TransferOptions): Promise<string> {
    const signal = this.#door.joined(options.signal);
    const headers = { "content-type": "application/octet-stream", "content-length": String(size) };
    const attempt = async (): Promise<string> =>
      await this.#door.finish(await this.#door.send("PUT", url, headers, content(), SLOW_SECONDS, signal), "PUT");
    return await this.#door.patiently(attempt, true, signal);
  }

  async #put(url: string, file: LocalFile, options: TransferOptions): Promise<string> {
    const size = await file.size();
    return await this.#send(url, size, () => reading(file, size, options.progress), options);
  }

  /** A browser does not tell how far it is. */
  async #putBlob(url: string, blob: Blob, options: TransferOptions): Promise<string> {
    const answer = await this.#send(url, blob.size, () => blob, options);
    options.progress?.(blob.size, blob.size);
    return answer;
  }

  async #fetch(url: string, file: LocalFile, options: TransferOptions): Promise<number> {
    const signal = this.#door.joined(options.signal);
    const attempt = async (): Promise<number> => {
      await file.clear();
      const answer = await this.#door.send("GET", url, {}, null, SLOW_SECONDS, signal);
      try {
        return await this.#copy(answer, file, options.progress);
      } finally {
        answer.close();
      }
    };
    return await this.#door.patiently(attempt, true, signal);
  }

  async #copy(answer: Answer, file: LocalFile, progress: Progress | undefined): Promise<number> {
    const length = answer.headers.get("content-length") ?? "";
    const total = /^\d+$/.test(length) ? Number(length) : null;
    let size = 0;
    for await (const chunk of this.#body(answer)) {
      await file.write(chunk);
      size += chunk.length;
      progress?.(size, total);
    }
    return size;
  }

  async *#body(answer: Answer): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const chunk = await this.#door.cuts("GET", () => answer.chunk());
      if (chunk === null) return;
      yield chunk;
    }
  }
}

function disk(): Promise<Disk> {
  const found = platform().disk();
  if (found === null) throw new InvalidInput(say("no_files_here"));
  return found;
}

/** Exactly as much as was promised, though the file may grow meanwhile. */
async function* reading(file: LocalFile, total: number, progress: Progress | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  while (size < total) {
    const chunk = await file.read(size, Math.min(CHUNK_BYTES, total - size));
    if (chunk.length === 0) return;
    yield chunk;
    size += chunk.length;
    progress?.(size, total);
  }
}

async function bytesOf(content: unknown): Promise<Uint8Array> {
  if (typeof content === "string") return new TextEncoder().encode(checkText("the content", content));
  if (content instanceof ArrayBuffer) return new Uint8Array(content);
  if (ArrayBuffer.isView(content)) return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  if (content instanceof Blob) return new Uint8Array(await content.arrayBuffer());
  if (typeof content === "object" && content !== null && Symbol.asyncIterator in content) {
    const parts: Uint8Array[] = [];
    for await (const chunk of content as AsyncIterable<unknown>) parts.push(await bytesOf(chunk));
    return joined(parts);
  }
  throw new InvalidInput(say("bad_content", { text: quoted(content) }));
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
