/** WebSockets of browsers: the one place that knows them, and where their errors become ours. */

import { Closed, Cut } from "../failures.js";
import { Inbox } from "../inbox.js";
import { after, checkSignal, now, sleep } from "../pauses.js";
import type { Socket, SocketAsked } from "../platform.js";

const TOKEN = "_forevervm_jwt"; // in the address: a page cannot set headers here. Servers keep it out of their logs
const FRAME_CHARACTERS_MAX = 16 * 1024 * 1024 + 1024;
const WAITING_BYTES_MAX = 1024 * 1024; // that may be on their way before whoever sends has to wait
const LOOK_SECONDS = 0.05; // a page is not told when they are gone
const CLOSE_SECONDS = 2; // a server that does not say good-bye is not waited for
const ABNORMAL = 1006; // no good-bye was heard

export async function openSocket(asked: SocketAsked): Promise<Socket> {
  checkSignal(asked.signal);
  const connection = new WebSocket(`${asked.url}${asked.url.includes("?") ? "&" : "?"}${TOKEN}=${encodeURIComponent(asked.token)}`);
  const socket = new WebSocketOfPage(connection);
  if (await opened(connection, asked)) return socket;
  checkSignal(asked.signal);
  (await asked.probe()).close(); // throws what the server says of it
  throw new Cut("closed in the handshake");
}

/** A browser does not say why it did not open. */
async function opened(connection: WebSocket, asked: SocketAsked): Promise<boolean> {
  const isOpen = await new Promise<boolean>((resolve) => {
    const finish = (isOpen: boolean): void => {
      clearTimeout(timer);
      asked.signal.removeEventListener("abort", stop);
      resolve(isOpen);
    };
    const stop = (): void => finish(false);
    const timer = after(asked.seconds, stop);
    asked.signal.addEventListener("abort", stop, { once: true });
    connection.addEventListener("open", () => finish(true), { once: true });
    connection.addEventListener("error", stop, { once: true });
    connection.addEventListener("close", stop, { once: true });
  });
  if (!isOpen) connection.close();
  return isOpen;
}

class WebSocketOfPage implements Socket {
  readonly #inbox = new Inbox();

  constructor(private readonly connection: WebSocket) {
    connection.addEventListener("message", (event: MessageEvent<unknown>) => this.#take(event.data));
    connection.addEventListener("close", ({ code, reason }) =>
      this.#inbox.end(code === ABNORMAL ? new Cut("closed without a good-bye") : new Closed(code, reason)),
    );
  }

  /** It cannot be told to wait. So it is cut off when nobody takes what it says, and whoever comes back for the rest gets it from the tape. */
  #take(data: unknown): void {
    if (this.#inbox.isEnded) return;
    if (typeof data === "string" && data.length <= FRAME_CHARACTERS_MAX) this.#inbox.put(data);
    else this.#give("what came is no frame of ours");
    if (this.#inbox.isFull) this.#give("too much came at once");
  }

  #give(why: string): void {
    this.#inbox.end(new Cut(why));
    this.connection.close();
  }

  #isOpen(): boolean {
    return this.connection.readyState === WebSocket.OPEN;
  }

  async send(text: string, seconds: number): Promise<void> {
    if (!this.#isOpen()) throw new Cut("it is closed");
    this.connection.send(text);
    const until = now() + seconds;
    while (this.connection.bufferedAmount > WAITING_BYTES_MAX) {
      if (now() >= until || !this.#isOpen()) {
        this.drop();
        throw new Cut("it takes nothing any more");
      }
      await sleep(LOOK_SECONDS);
    }
  }

  async receive(seconds: number, signal: AbortSignal): Promise<string | null> {
    return await this.#inbox.take(seconds, signal);
  }

  async close(): Promise<void> {
    if (this.connection.readyState === WebSocket.CLOSED) return;
    await new Promise<void>((resolve) => {
      const timer = after(CLOSE_SECONDS, resolve);
      const finish = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.connection.addEventListener("close", finish, { once: true });
      this.connection.close(1000);
    });
  }

  drop(): void {
    this.#give("dropped");
  }
}
