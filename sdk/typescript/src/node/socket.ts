/** WebSockets by `ws`: the one place that knows it, and where its errors become ours.
 *
 * Also where Node has one of its own: that does not say why a handshake was refused, cannot set headers, and cannot be told to wait. */

import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";

import { BODY_BYTES_MAX, Closed, Cut, Refusal, Unreached, VERSION_HEADER, type Headers } from "../failures.js";
import { Inbox } from "../inbox.js";
import { after, checkSignal, reasonOf } from "../pauses.js";
import type { Socket, SocketAsked } from "../platform.js";
import { causeOf } from "./causes.js";

const FRAME_BYTES_MAX = 16 * 1024 * 1024 + 1024;
const CLOSE_SECONDS = 2; // a server that does not say good-bye is not waited for
const ABNORMAL = 1006; // no good-bye was heard

export async function openSocket(asked: SocketAsked): Promise<Socket> {
  const { WebSocket } = await import("ws");
  checkSignal(asked.signal);
  // Whether the other side lives is asked by whoever waits, with requests of ours: hence no pings of the library's.
  const options = { headers: { ...asked.headers }, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false, followRedirects: false };
  const connection = new WebSocket(asked.url, options);
  const socket = new NodeSocket(connection);
  await opened(connection, asked);
  return socket;
}

async function opened(connection: WebSocket, asked: SocketAsked): Promise<void> {
  let failure: Error | null = null;
  const end = (why: Error): void => {
    failure ??= why;
    connection.terminate();
  };
  const stop = (): void => end(reasonOf(asked.signal));
  const timer = after(asked.seconds, () => end(new Unreached("no connection in time", "slow")));
  asked.signal.addEventListener("abort", stop, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.once("open", resolve);
      connection.once("unexpected-response", (_request, response) => void refusal(response).then(reject, reject));
      connection.on("error", (error) => reject(failure ?? new Unreached(error.message, causeOf(error))));
      connection.on("close", () => reject(failure ?? new Cut("closed in the handshake")));
    });
  } catch (error) {
    connection.terminate();
    throw error;
  } finally {
    clearTimeout(timer);
    asked.signal.removeEventListener("abort", stop);
  }
}

/** The whole answer, as far as it is no longer than an error may be. */
async function refusal(response: IncomingMessage): Promise<Error> {
  const headers: Headers = { get: (name) => [response.headers[name] ?? []].flat()[0] ?? null };
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > BODY_BYTES_MAX) break;
      parts.push(chunk);
    }
  } catch (error) {
    if (headers.get(VERSION_HEADER) !== null) return new Cut(error instanceof Error ? error.message : String(error));
    parts.length = 0; // a stranger's may be as broken as it likes: that it is one is known already
  }
  return new Refusal(response.statusCode ?? 0, headers, Buffer.concat(parts).toString("utf8"));
}

class NodeSocket implements Socket {
  readonly #inbox = new Inbox();

  constructor(private readonly connection: WebSocket) {
    connection.on("message", (data: Buffer) => {
      this.#inbox.put(data.toString("utf8"));
      if (this.#inbox.isFull) connection.pause();
    });
    connection.on("error", (error) => this.#inbox.end(new Cut(error.message)));
    connection.on("close", (status, reason) =>
      this.#inbox.end(status === ABNORMAL ? new Cut("closed without a good-bye") : new Closed(status, reason.toString("utf8"))),
    );
  }

  async send(text: string, seconds: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = after(seconds, () => {
        this.drop();
        reject(new Cut("it takes nothing any more"));
      });
      this.connection.send(text, (error) => {
        clearTimeout(timer);
        if (error) reject(new Cut(error.message));
        else resolve();
      });
    });
  }

  async receive(seconds: number, signal: AbortSignal): Promise<string | null> {
    const frame = await this.#inbox.take(seconds, signal);
    if (this.connection.isPaused && !this.#inbox.isFull) this.connection.resume();
    return frame;
  }

  async close(): Promise<void> {
    if (this.connection.readyState === this.connection.CLOSED) return;
    await new Promise<void>((resolve) => {
      const timer = after(CLOSE_SECONDS, () => this.drop());
      this.connection.once("close", () => {
        clearTimeout(timer);
        resolve();
      });
      this.connection.resume(); // else a good-bye would wait behind what nobody reads
      this.connection.close(1000);
    });
  }

  drop(): void {
    this.connection.terminate();
    this.#inbox.end(new Cut("dropped"));
  }
}
