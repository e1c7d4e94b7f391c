/** One request, asked again where that is safe, and its answer or one error of ours. */

import type { Access } from "./access.js";
import { decode, type Shape } from "./decoding.js";
import { EverforgeError } from "./error.js";
import { BODY_BYTES_MAX, Cut, Unreached, VERSION_HEADER, errorOf, foreign } from "./failures.js";
import { ClientError, InvalidInput, ProtocolError, StillRunning, Uncertain, Unreachable } from "./generated/errors.js";
import { CAUSES } from "./generated/sentences.js";
import { VERSION } from "./generated/version.js";
import { checkText } from "./inputs.js";
import { Patience, checkSignal, reasonOf, sleep, type Deadline } from "./pauses.js";
import { platform, type Answer, type Content, type Transport } from "./platform.js";
import { say } from "./sentences.js";

const ANSWER_BYTES_MAX = 64 * 1024 * 1024; // of JSON; a page of a tape is far less
export const SILENCE_SECONDS = 60; // how long a server may say nothing to a plain request
export const SLOW_SECONDS = 600; // and to one that saves, wakes or copies a whole machine
export const RETRY_SECONDS = 30;
const KEY_BYTES = 16;

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

/** What every request can be given. */
export interface RequestOptions {
  /** Ends the waiting, and not what was asked for. */
  signal?: AbortSignal | undefined;
}

export interface Asking extends RequestOptions {
  /** May it be done twice, when nobody knows whether it was done? */
  again?: boolean;
  /** With a key it is safe to ask again: the server then gives the same answer. */
  key?: string;
  silence_seconds?: number;
  deadline?: Deadline;
  method?: string;
}

export interface DoorOptions {
  retry_seconds?: number;
  on_connection?: ((connected: boolean) => unknown) | undefined;
  signal?: AbortSignal | undefined;
}

export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
}

/** What is not given is left out. */
export function bodyOf(request: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined && value !== null));
}

export function encode(value: unknown): string {
  try {
    return JSON.stringify(value, (name, one: unknown) => {
      if (typeof one === "number" && !Number.isFinite(one)) throw new InvalidInput(say("not_a_number", { name, text: String(one) }));
      return one;
    });
  } catch (error) {
    if (error instanceof InvalidInput) throw error;
    throw new InvalidInput(say("not_json", { why: error instanceof Error ? error.message : String(error) }));
  }
}

/** To one server, with one token. */
export class Door {
  readonly base_url: string;
  /** Has this server ever answered? Then it may only be restarting. */
  met = false;
  /** Aborted when the client is closed, or when the signal that it was given is. */
  readonly signal: AbortSignal;
  // Private for good: whoever prints an object of ours is not to read the token.
  readonly #token: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #ending = new AbortController();
  readonly #transport: Transport;
  readonly #retrySeconds: number;
  readonly #onConnection: ((connected: boolean) => unknown) | undefined;
  readonly #given: AbortSignal | undefined;
  #lost = false;

  constructor(access: Access, options: DoorOptions = {}) {
    this.base_url = access.base_url;
    this.#token = access.token;
    this.#retrySeconds = options.retry_seconds ?? RETRY_SECONDS;
    this.#onConnection = options.on_connection;
    this.signal = this.#ending.signal;
    this.#headers = headersOf(access.token);
    this.#transport = platform().transport();
    this.#given = options.signal;
    if (options.signal?.aborted) this.#stop();
    else options.signal?.addEventListener("abort", this.#stop, { once: true });
  }

  readonly #stop = (): void => {
    if (this.#given !== undefined) this.#ending.abort(reasonOf(this.#given));
  };

  /** What is under way ends with an error. */
  close(): void {
    this.#given?.removeEventListener("abort", this.#stop);
    this.#ending.abort(new ClientError(say("closed")));
    this.#transport.close();
  }

  /** The caller's signal and the client's, as one. */
  joined(signal: AbortSignal | null | undefined): AbortSignal {
    return signal === undefined || signal === null || signal === this.signal ? this.signal : AbortSignal.any([this.signal, signal]);
  }

  get token(): string {
    return this.#token;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  /** Of streams that find their way back by themselves: whoever watches them is told once of a loss, and once when it is over. */
  tell(connected: boolean): void {
    if (this.#lost !== connected) return;
    this.#lost = !connected;
    this.#onConnection?.(connected);
  }

  url(path: string, query: Query = {}): string {
    const pairs: string[] = [];
    for (const [name, value] of Object.entries(query)) {
      const several = Array.isArray(value) ? (value as readonly string[]) : [value as string | number | boolean | null | undefined];
      for (const one of several) {
        if (one !== null && one !== undefined) pairs.push(`${name}=${encodeURIComponent(checkText(name, String(one)))}`);
      }
    }
    return `${this.base_url}/v1${path}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
  }

  // --- plain questions -----------------------------------------------------------------------------------------------------------------

  /** StillRunning when the deadline comes first. */
  async get<T>(shape: Shape, path: string, query: Query = {}, asking: Asking = {}): Promise<T> {
    return decode<T>(shape, await this.ask("GET", this.url(path, query), null, { again: true, ...asking }));
  }

  async post<T>(shape: Shape, path: string, request: object | null, asking: Asking = {}): Promise<T> {
    const body = request === null ? "{}" : encode(bodyOf(request));
    const again = asking.again === true || asking.key !== undefined;
    return decode<T>(shape, await this.ask(asking.method ?? "POST", this.url(path), body, { ...asking, again }));
  }

  /** Nothing that was deleted can be deleted twice, so that asking again is safe; only, it may then be gone already. */
  async delete(path: string, query: Query = {}, options: RequestOptions = {}): Promise<void> {
    const url = this.url(path, query);
    const asking = { silence_seconds: SLOW_SECONDS, signal: options.signal };
    try {
      await this.ask("DELETE", url, null, { ...asking, again: false });
    } catch (error) {
      if (!(error instanceof Uncertain)) throw error;
      try {
        await this.ask("DELETE", url, null, { ...asking, again: true });
      } catch (second) {
        if (!(second instanceof EverforgeError) || second.httpStatus !== 404) throw second;
      }
    }
  }

  async ask(method: string, url: string, body: string | Uint8Array | Blob | null, asking: Asking): Promise<string> {
    const { deadline, silence_seconds = SILENCE_SECONDS } = asking;
    const signal = this.joined(asking.signal);
    const headers: Record<string, string> = body === null ? {} : { "content-type": "application/json" };
    if (asking.key !== undefined) headers["idempotency-key"] = asking.key;
    const content = typeof body === "string" ? new TextEncoder().encode(body) : body;
    const attempt = async (): Promise<string> => {
      const answer = await this.send(method, url, headers, content, deadline?.within(silence_seconds) ?? silence_seconds, signal);
      const left = deadline?.left ?? null;
      if (left !== null) answer.endAfter(left);
      return await this.finish(answer, method);
    };
    return await this.patiently(attempt, asking.again === true, signal, deadline);
  }

  /** The whole of an answer, that is then closed. */
  async finish(answer: Answer, method: string): Promise<string> {
    try {
      return await this.cuts(method, () => readAll(answer, ANSWER_BYTES_MAX));
    } finally {
      answer.close();
    }
  }

  async patiently<T>(attempt: () => Promise<T>, again: boolean, signal: AbortSignal, deadline?: Deadline): Promise<T> {
    const patience = new Patience(this.#retrySeconds);
    patience.start();
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        const pause = error instanceof EverforgeError && this.mayAskAgain(error, again) ? patience.pause(error.retryAfterSeconds) : null;
        if (pause === null) throw error;
        await sleep(deadline?.within(pause) ?? pause, signal);
      }
      if (deadline?.passed === true) throw new StillRunning(say("no_answer_in_time"));
    }
  }

  mayAskAgain(error: EverforgeError, again: boolean): boolean {
    if (error instanceof Uncertain) return again;
    if (error instanceof Unreachable) return this.met; // nothing happened; and it may only be restarting
    return (error.httpStatus === 429 || error.httpStatus === 503) && error.retry !== "never"; // refused: nothing happened
  }

  // --- one try -------------------------------------------------------------------------------------------------------------------------

  /** An answer that is a success, its body yet to come; whoever asked closes it. */
  async send(
    method: string,
    url: string,
    headers: Readonly<Record<string, string>>,
    content: Content | null,
    silence_seconds: number,
    signal: AbortSignal,
  ): Promise<Answer> {
    checkSignal(signal);
    const { answer, body } = await this.cuts(method, async () => {
      const answer = await this.#transport.send({ method, url, headers: { ...this.headers, ...headers }, content, silence_seconds, signal });
      const isOurs = answer.headers.get(VERSION_HEADER) !== null;
      if (isOurs && isSuccess(answer)) return { answer, body: null };
      try {
        if (isSuccess(answer)) throw foreign(this.base_url);
        return { answer, body: await refusal(answer, isOurs) };
      } finally {
        answer.close();
      }
    });
    this.met = true;
    if (body !== null) throw errorOf(answer.status, answer.headers, body, this.base_url);
    return answer;
  }

  /** What happens to a connection becomes an error of ours. */
  async cuts<T>(method: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof Unreached) throw this.unreachable(error);
      if (error instanceof Cut) throw new Uncertain(say(method === "GET" ? "cut" : "cut_unsure", { url: this.base_url }), { cause: error.message });
      throw error;
    }
  }

  unreachable(cause: Error): Unreachable {
    const why = cause instanceof Unreached ? cause.why : CAUSES.failed;
    return new Unreachable(say("unreachable", { url: this.base_url, cause: why }), { cause: cause.message });
  }
}

function headersOf(token: string): Record<string, string> {
  const { agent } = platform();
  return {
    ...(agent === null ? {} : { "user-agent": `everforge-typescript/${VERSION} ${agent}` }),
    ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
  };
}

function isSuccess(answer: Answer): boolean {
  return answer.status >= 200 && answer.status < 300;
}

/** Its body. A stranger's may be as broken as it likes: that it is one is known already. */
async function refusal(answer: Answer, isOurs: boolean): Promise<string> {
  try {
    return await readAll(answer, BODY_BYTES_MAX);
  } catch (error) {
    if (isOurs || !(error instanceof Cut)) throw error;
    return "";
  }
}

/** As text. The bytes are counted before they are kept. */
async function readAll(answer: Answer, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let size = 0;
  for (let chunk = await answer.chunk(); chunk !== null; chunk = await answer.chunk()) {
    size += chunk.length;
    if (size > bytesMax) throw new ProtocolError(say("answer_too_long", { bytes: bytesMax }));
    parts.push(decoder.decode(chunk, { stream: true }));
  }
  parts.push(decoder.decode());
  return parts.join("");
}
