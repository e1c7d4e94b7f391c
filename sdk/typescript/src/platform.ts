/** Where Node and browsers really differ: connections, files of this computer, and what belongs to a task. One of the two is put in here, by the entry. */

import type { Access } from "./access.js";
import type { Headers } from "./failures.js";
import type { Disk } from "./disk.js";

export type Content = Uint8Array | Blob | AsyncIterable<Uint8Array>;

/** Status and headers are here; the body comes as it comes. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Whatever has not come by then is cut off. Said again, it is the new time that counts. */
  endAfter(seconds: number): void;
  /** The next; null when there are no more. Throws Cut. */
  chunk(): Promise<Uint8Array | null>;
  /** Twice is fine. */
  close(): void;
}

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly content: Content | null;
  /** How long the other side may say and take nothing. */
  readonly silence_seconds: number;
  /** Counts until the answer is closed. */
  readonly signal: AbortSignal;
}

/** Connections are kept for the next request. */
export interface Transport {
  /** Throws Unreached, Cut, or what the signal was aborted with. */
  send(asked: Asked): Promise<Answer>;
  close(): void;
}

export interface SocketAsked {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly token: string;
  readonly seconds: number;
  readonly signal: AbortSignal;
  /** Asks over HTTP for what the WebSocket is of: a browser does not say why one was refused. */
  readonly probe: () => Promise<Answer>;
}

export interface Socket {
  /** What the other side has not taken by then stays in its middle: nothing else can be sent behind it, and the connection is dropped. Throws Cut. */
  send(text: string, seconds: number): Promise<void>;
  /** null when nothing came. Throws Cut, Closed. */
  receive(seconds: number, signal: AbortSignal): Promise<string | null>;
  close(): Promise<void>;
  /** Without a good-bye, which nobody would hear. */
  drop(): void;
}

/** What whoever was called knows of its callers, through every await. */
export interface Context<T> {
  run<R>(value: T, act: () => R): R;
  get(): T | undefined;
}

export interface Platform {
  /** For the User-Agent; null where that is not ours to say. */
  readonly agent: string | null;
  findAccess(token: string | undefined, base_url: string | undefined): Access;
  transport(): Transport;
  /** Throws Unreached, Refusal, Cut, or what the signal was aborted with. */
  openSocket(asked: SocketAsked): Promise<Socket>;
  context<T>(): Context<T>;
  /** Files of this computer; null where there are none. */
  disk(): Promise<Disk> | null;
}

let current: Platform | null = null;

export function usePlatform(platform: Platform): void {
  current = platform;
}

export function platform(): Platform {
  if (current === null) throw new Error("import this from 'everforge', not from a file inside of it");
  return current;
}
