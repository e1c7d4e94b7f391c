/** HTTP by Node's own client: the one place that knows it, and where its errors become ours.
 *
 * Not `fetch`: that gives up after five minutes of silence, does not tell a refused connection from a cut one, and takes `%2E%2E` out of addresses. */

import type { Agent, ClientRequest, IncomingMessage } from "node:http";

import { Cut, Unreached, type Headers } from "../failures.js";
import { after, checkSignal, reasonOf } from "../pauses.js";
import type { Answer, Asked, Content, Transport } from "../platform.js";
import { causeOf } from "./causes.js";

const CONNECT_SECONDS = 10;
const CONNECTIONS_MAX = 100;
const IDLE_MS = 30_000; // a connection that nobody uses; servers keep theirs for longer

interface Http {
  request: (typeof import("node:http"))["request"];
  agent: Agent;
}

export class NodeTransport implements Transport {
  readonly #agents = new Map<string, Promise<Http>>();

  async send(asked: Asked): Promise<Answer> {
    const target = new Target(asked.url);
    const http = await this.#http(target.secure);
    checkSignal(asked.signal);
    return await new Exchange(asked, http, target).answer();
  }

  async #http(secure: boolean): Promise<Http> {
    const name = secure ? "node:https" : "node:http";
    let found = this.#agents.get(name);
    if (found === undefined) {
      found = load(secure);
      this.#agents.set(name, found);
    }
    return await found;
  }

  close(): void {
    for (const http of this.#agents.values()) void http.then(({ agent }) => agent.destroy());
  }
}

/** Only what is needed: TLS takes its time to load. */
async function load(secure: boolean): Promise<Http> {
  const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX, maxFreeSockets: CONNECTIONS_MAX / 5, timeout: IDLE_MS };
  if (!secure) {
    const http = await import("node:http");
    return { request: http.request, agent: new http.Agent(options) };
  }
  const https = await import("node:https");
  return { request: https.request, agent: new https.Agent(options) };
}

/** An address in parts, its path as it was spelled: a URL would take steps up for what they mean. */
class Target {
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: string;
  readonly path: string;

  constructor(url: string) {
    const begin = url.indexOf("/", url.indexOf("//") + 2);
    const place = new URL(url.slice(0, begin));
    this.secure = place.protocol === "https:";
    this.hostname = place.hostname.replace(/^\[|\]$/g, "");
    this.port = place.port;
    this.path = url.slice(begin);
  }
}

/** One request, until its answer begins. */
class Exchange {
  readonly #request: ClientRequest;
  readonly #connecting: ReturnType<typeof setTimeout>;
  #connected = false;
  #answered = false;
  #failure: Error | null = null; // why we ended it ourselves

  constructor(
    private readonly asked: Asked,
    http: Http,
    target: Target,
  ) {
    const { method, headers, silence_seconds, signal } = asked;
    const { hostname, path, port } = target;
    this.#request = http.request({ hostname, path, port: port || undefined, method, headers, agent: http.agent });
    this.#request.setTimeout(silence_seconds * 1000, () => this.#fail(new Cut("it says nothing any more")));
    this.#connecting = after(Math.min(silence_seconds, CONNECT_SECONDS), () => this.#fail(new Unreached("no connection in time", "slow")));
    this.#request.on("socket", (socket) => {
      if (socket.connecting) socket.once(target.secure ? "secureConnect" : "connect", this.#met);
      else this.#met();
    });
    signal.addEventListener("abort", this.#stop, { once: true });
  }

  readonly #met = (): void => {
    this.#connected = true;
    clearTimeout(this.#connecting);
  };

  readonly #stop = (): void => this.#fail(reasonOf(this.asked.signal));

  #fail(why: Error): void {
    this.#failure ??= why;
    this.#request.destroy(why);
  }

  async answer(): Promise<Answer> {
    try {
      return await new Promise<Answer>((resolve, reject) => {
        this.#request.on("error", (error) => reject(this.#explained(error))); // later ones are the answer's
        this.#request.on("close", () => reject(this.#explained(new Error("closed without an answer"))));
        this.#request.once("response", (response) => {
          this.#answered = true;
          resolve(new NodeAnswer(response, this.#request, (error) => this.#explained(error), this.#release));
        });
        void this.#write(this.asked.content);
      });
    } catch (error) {
      this.#release();
      throw error;
    } finally {
      clearTimeout(this.#connecting);
    }
  }

  readonly #release = (): void => this.asked.signal.removeEventListener("abort", this.#stop);

  #explained(error: Error): Error {
    if (this.#failure !== null) return this.#failure;
    return this.#connected ? new Cut(error.message) : new Unreached(error.message, causeOf(error));
  }

  async #write(content: Content | null): Promise<void> {
    try {
      if (content === null || content instanceof Uint8Array) this.#request.end(content ?? undefined);
      else await this.#pour(content instanceof Blob ? content.stream() : content);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error))); // of whatever the content comes from
    }
  }

  /** No faster than the other side takes it. */
  async #pour(content: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const chunk of content) {
      if (this.#request.destroyed || this.#answered) return; // it has answered already, and wants no more
      if (this.#request.write(chunk)) continue;
      await new Promise<void>((resolve) => {
        const go = (): void => {
          this.#request.off("drain", go).off("close", go).off("response", go);
          resolve();
        };
        this.#request.once("drain", go).once("close", go).once("response", go);
      });
    }
    this.#request.end();
  }
}

class NodeAnswer implements Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly #body: AsyncIterator<Buffer, undefined>;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #ending: Error | null = null;

  constructor(
    private readonly response: IncomingMessage,
    private readonly request: ClientRequest,
    private readonly explained: (error: Error) => Error,
    private readonly release: () => void,
  ) {
    this.status = response.statusCode ?? 0;
    this.headers = { get: (name) => textOf(response.headers[name]) };
    response.on("error", () => undefined); // whoever reads is told
    this.#body = response[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  }

  endAfter(seconds: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = after(seconds, () => {
      this.#ending = new Cut("its time is over");
      this.response.destroy(this.#ending);
    });
  }

  async chunk(): Promise<Uint8Array | null> {
    try {
      const found: IteratorResult<Buffer, undefined> = await this.#body.next();
      return found.done === true ? null : found.value;
    } catch (error) {
      throw this.#ending ?? this.explained(error as Error);
    }
  }

  /** One that was read to its end leaves the connection to the next. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.release();
    if (!this.response.readableEnded) this.request.destroy();
  }
}

function textOf(value: string | string[] | undefined): string | null {
  return Array.isArray(value) ? value.join(", ") : (value ?? null);
}
