/** HTTP by `fetch`: the one place that knows it, and where its errors become ours. */

import { Cut, Unreached, type Headers } from "../failures.js";
import { Forbidden, InvalidInput } from "../generated/errors.js";
import { after, checkSignal, reasonOf } from "../pauses.js";
import type { Answer, Asked, Content, Transport } from "../platform.js";
import { quoted } from "../quoting.js";
import { say } from "../sentences.js";

const PROBE_SECONDS = 10;
const SLOWEST_BYTES_PER_SECOND = 64 * 1024; // of an upload, whose progress a page is not told
const FORBIDDEN_HEADERS: readonly string[] = ["content-length"]; // a browser sets it by itself, and warns whoever tries
const STEP = /^(?:\.|%2e){1,2}$/i;
const PLAIN: RequestInit = { redirect: "manual", credentials: "omit", cache: "no-store" };

export class WebTransport implements Transport {
  #met = false;

  async send(asked: Asked): Promise<Answer> {
    checkSignal(asked.signal);
    checkPath(asked.url);
    const watch = new Watch(asked.signal);
    const body = await bodyOf(asked.content);
    const bytes = body instanceof Blob ? body.size : (body?.length ?? 0);
    watch.expect(asked.silence_seconds + bytes / SLOWEST_BYTES_PER_SECOND);
    try {
      const headers = Object.entries(asked.headers).filter(([name]) => !FORBIDDEN_HEADERS.includes(name));
      const response = await fetch(asked.url, { ...PLAIN, method: asked.method, headers, body, signal: watch.signal });
      this.#met = true;
      return new WebAnswer(response, watch, asked.silence_seconds);
    } catch (error) {
      watch.end();
      throw watch.ended ?? (await this.#explained(asked, error));
    }
  }

  /** A browser says no more than that it failed. So somebody else is asked: is the server there, and does it talk to this page? */
  async #explained(asked: Asked, error: unknown): Promise<Error> {
    const why = error instanceof Error ? error.message : String(error);
    if (!(await answers(asked, "no-cors"))) {
      // A request that changes something may have been heard by a server that has answered before, and is gone since.
      return asked.method === "GET" || !this.#met ? new Unreached(why) : new Cut(why);
    }
    if (this.#met || (await answers(asked, "cors"))) return new Cut(why);
    return new Forbidden(say("page_refused", { origin: location.origin, url: new URL(asked.url).origin }));
  }

  close(): void {
    // Connections are the browser's.
  }
}

/** Does anything come from there? With "no-cors" it may be whatever it is. */
async function answers(asked: Asked, mode: RequestMode): Promise<boolean> {
  checkSignal(asked.signal);
  try {
    await fetch(new URL("/", asked.url), { ...PLAIN, mode, signal: AbortSignal.any([asked.signal, AbortSignal.timeout(PROBE_SECONDS * 1000)]) });
    return true;
  } catch {
    checkSignal(asked.signal);
    return false;
  }
}

/** Steps in a path would be taken, however they are spelled: another thing than the one that was named would be asked for. */
function checkPath(url: string): void {
  const [path = ""] = url.split("?");
  if (path.split("/").some((part) => STEP.test(part))) throw new InvalidInput(say("dots_in_address", { text: quoted(decodeURIComponent(path)) }));
}

async function bodyOf(content: Content | null): Promise<Blob | Uint8Array<ArrayBuffer> | null> {
  if (content === null || content instanceof Blob) return content;
  if (content instanceof Uint8Array) return content as Uint8Array<ArrayBuffer>;
  const parts: BlobPart[] = [];
  for await (const chunk of content) parts.push(chunk as Uint8Array<ArrayBuffer>);
  return new Blob(parts);
}

/** Ends an exchange when nothing comes in time, or when whoever asked wants no more. */
class Watch {
  /** Why it was ended, where we did it. */
  ended: Error | null = null;
  readonly #controller = new AbortController();
  #silence: ReturnType<typeof setTimeout> | null = null;
  #deadline: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly given: AbortSignal) {
    given.addEventListener("abort", this.#stop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly #stop = (): void => this.#abort(reasonOf(this.given));

  #abort(why: Error): void {
    this.ended ??= why;
    this.#controller.abort(why);
  }

  /** Something within so many seconds. */
  expect(seconds: number): void {
    this.relax();
    this.#silence = after(seconds, () => this.#abort(new Cut("it says nothing any more")));
  }

  relax(): void {
    if (this.#silence !== null) clearTimeout(this.#silence);
    this.#silence = null;
  }

  endAfter(seconds: number): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#deadline = after(seconds, () => this.#abort(new Cut("its time is over")));
  }

  end(): void {
    this.relax();
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.given.removeEventListener("abort", this.#stop);
  }

  /** With the connection. */
  cut(): void {
    this.end();
    this.#controller.abort();
  }
}

class WebAnswer implements Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | null;
  #done = false;

  constructor(
    response: Response,
    private readonly watch: Watch,
    private readonly silence_seconds: number,
  ) {
    this.status = response.type === "opaqueredirect" ? 302 : response.status; // which of them it was is not told
    this.headers = response.headers;
    this.#reader = response.body?.getReader() ?? null;
    watch.relax();
  }

  endAfter(seconds: number): void {
    this.watch.endAfter(seconds);
  }

  async chunk(): Promise<Uint8Array | null> {
    this.watch.expect(this.silence_seconds);
    try {
      const read = await this.#reader?.read();
      this.#done = read?.done !== false;
      return read?.done === false ? read.value : null;
    } catch (error) {
      throw this.watch.ended ?? new Cut(error instanceof Error ? error.message : String(error));
    } finally {
      this.watch.relax();
    }
  }

  close(): void {
    if (this.#done) this.watch.end();
    else this.watch.cut();
  }
}
