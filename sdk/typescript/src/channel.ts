/** The WebSocket of one machine: requests and their replies, entries of the tape for whoever listens, and a new connection after every cut.
 *
 * Nothing runs here by itself: whoever waits for something reads, for itself and for all others that wait at that moment. */

import { entry as checked, isObject, parse, type Fields } from "./decoding.js";
import { SILENCE_SECONDS, encode, type Door } from "./door.js";
import { EverforgeError } from "./error.js";
import { Closed, Cut, Refusal, Unreached, errorFrom, errorOf, foreign, revoked } from "./failures.js";
import type { Entry } from "./generated/entries.js";
import { MachineNotFound, ProtocolError, StillRunning, Uncertain } from "./generated/errors.js";
import { machineName } from "./inputs.js";
import { ChannelClosed, Listener, type Channelled } from "./listener.js";
import { Deadline, FOR_EVER, Patience, checkSignal, now, sleep } from "./pauses.js";
import { platform, type Socket } from "./platform.js";
import { behind } from "./results.js";
import { say } from "./sentences.js";
import { RECONNECT_SECONDS, TapeReader } from "./tape.js";
import { Turn } from "./turn.js";

/** Of silence, before the other side is asked whether it lives, and that it has to say so. Tests have less patience. */
export const PATIENCE = { open_seconds: 10, ping_seconds: 20, pong_seconds: 20 };

interface Sent {
  connection: number;
  deadline: Deadline;
}

export class Channel implements Channelled {
  /** The last entry seen; null before the first connection: from now on. */
  cursor: number | null;
  readonly #path: string;
  readonly #patience = new Patience(RECONNECT_SECONDS); // renewed by whatever is heard; that a connection could be made is not enough
  readonly #turn = new Turn();
  readonly #replies = new Map<number, Fields | null>(); // by request; null while it is waited for
  readonly #listeners = new Set<Listener>();
  #socket: Socket | null = null;
  #connections = 0;
  #silentUntil = 0; // when it has been silent for so long that something must be done
  #pinged = false;
  #connecting = false;
  #reading = false;
  #requests = 0;
  #sending = 0; // requests that are on their way out at this moment
  #session: AbortController; // until it is closed; whoever comes later begins another

  constructor(
    private readonly door: Door,
    machine: string,
    after: number | null,
  ) {
    this.#path = `/machine/${machineName(machine)}`;
    this.cursor = after;
    this.#session = this.#begin();
  }

  #begin(): AbortController {
    const session = new AbortController();
    const stop = (): void => {
      session.abort(this.door.signal.reason);
      if (this.#socket !== null) this.#drop(this.#socket);
    };
    if (this.door.signal.aborted) stop();
    else this.door.signal.addEventListener("abort", stop, { signal: session.signal });
    return session;
  }

  /** With the caller's. */
  joined(signal: AbortSignal | undefined): AbortSignal {
    const own = this.#session.signal;
    return signal === undefined || signal === this.door.signal ? own : AbortSignal.any([own, signal]);
  }

  outer(signal: AbortSignal | undefined): AbortSignal {
    return this.door.joined(signal);
  }

  listen(wants: (entry: Entry) => boolean, wait_seconds?: number, outlives = false): Listener {
    const listener = new Listener(this, wants, wait_seconds, outlives);
    this.#listeners.add(listener);
    return listener;
  }

  forget(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  reader(after: number, deadline: Deadline): TapeReader {
    return new TapeReader(this.door, `${this.#path}/tape`, after, deadline);
  }

  // --- requests ----------------------------------------------------------------------------------------------------------------------------

  /** `again`: may it be sent twice, when the connection was cut before the reply? */
  async ask(message: { type: string } & Fields, again: boolean, given?: AbortSignal): Promise<Fields> {
    const signal = this.joined(given);
    const number = ++this.#requests;
    const text = encode({ ...message, request_id: number });
    this.#replies.set(number, null);
    try {
      for (;;) {
        const sent = await this.#send(text, message.type, signal);
        const reply = await this.#reply(number, sent, message.type, signal);
        if (reply !== null) return good(reply);
        if (!again) throw new Uncertain(say("cut_unsure", { url: this.door.base_url }));
      }
    } finally {
      this.#replies.delete(number);
    }
  }

  /** null when the connection that the request went out on is gone. */
  async #reply(number: number, sent: Sent, what: string, signal: AbortSignal): Promise<Fields | null> {
    const settled = (): boolean => this.#replies.get(number) !== null || this.#connections !== sent.connection || this.#socket === null;
    if (await this.until(settled, sent.deadline, signal)) return this.#replies.get(number) ?? null;
    throw this.#silent(what);
  }

  /** On which connection it went out, and until when the reply may come: a server that does not take the request is as silent as one that does not
   * answer it. */
  async #send(text: string, what: string, signal: AbortSignal): Promise<Sent> {
    for (;;) {
      const socket = await this.#connected(FOR_EVER, signal);
      const sent = { connection: this.#connections, deadline: new Deadline(SILENCE_SECONDS) };
      this.#sending++;
      try {
        await socket.send(text, SILENCE_SECONDS);
        return sent;
      } catch (error) {
        if (!(error instanceof Cut)) throw error;
        if (sent.deadline.passed) {
          this.#drop(socket);
          throw this.#silent(what);
        }
        await this.#lost(socket, error, FOR_EVER, signal);
      } finally {
        this.#sending--;
      }
    }
  }

  #silent(what: string): Uncertain {
    return new Uncertain(say("silent", { url: this.door.base_url, seconds: SILENCE_SECONDS, what }));
  }

  // --- reading -----------------------------------------------------------------------------------------------------------------------------

  /** Reads until it is so; false when the deadline came first. */
  async until(ready: () => boolean, deadline: Deadline, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      while (this.#reading && !ready() && !deadline.passed) {
        await this.#turn.wait(deadline.within(PATIENCE.ping_seconds), signal); // whoever reads tells all others at every frame
      }
      if (ready()) return true;
      if (deadline.passed) return false;
      this.#reading = true;
      try {
        await this.#read(deadline, signal);
      } finally {
        this.#reading = false;
        this.#turn.notifyAll();
      }
    }
  }

  /** One frame, if one comes in time. Only one at a time is here. */
  async #read(deadline: Deadline, signal: AbortSignal): Promise<void> {
    const socket = await this.#connected(deadline, signal);
    let text: string | null;
    try {
      text = await socket.receive(deadline.within(Math.max(0.001, this.#silentUntil - now())), signal);
      if (text === null && now() >= this.#silentUntil) await this.#doubt(socket, deadline);
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      await this.#lost(socket, error, deadline, signal);
      return;
    }
    if (text === null) return;
    this.#trust();
    this.#patience.renew();
    this.#dispatch(text);
  }

  /** Something was heard just now. */
  #trust(): void {
    this.#pinged = false;
    this.#silentUntil = now() + PATIENCE.ping_seconds;
  }

  /** Nothing has been heard for long. */
  async #doubt(socket: Socket, deadline: Deadline): Promise<void> {
    if (this.#pinged) throw new Cut("it says nothing any more");
    if (this.#sending === 0) {
      // Else that asks as well as any ping, which would only wait behind it.
      await socket.send('{"type":"ping","request_id":0}', deadline.within(PATIENCE.pong_seconds));
      this.#pinged = true;
    }
    this.#silentUntil = now() + PATIENCE.pong_seconds;
  }

  #dispatch(text: string): void {
    const frame = parse(text);
    const { type, request_id: number } = frame;
    if (type === "reply" || type === "error") {
      if (typeof number === "number" && this.#replies.has(number)) this.#replies.set(number, frame);
      else if (type === "error" && (number === null || number === undefined)) throw errorIn(frame);
      return;
    }
    const found = checked(frame);
    const fresh = found === null || this.cursor === null ? null : behind(found, this.cursor);
    if (fresh === null) return;
    this.cursor = fresh.cursor;
    for (const listener of this.#listeners) listener.offer(this.#listeners.size > 1 ? { ...fresh } : fresh, text.length);
  }

  // --- connections -------------------------------------------------------------------------------------------------------------------------

  async open(given?: AbortSignal): Promise<void> {
    await this.#connected(FOR_EVER, this.joined(given));
  }

  /** Made by one, for all who need it meanwhile. */
  async #connected(deadline: Deadline, signal: AbortSignal): Promise<Socket> {
    while (this.#socket === null && this.#connecting) {
      await this.#turn.wait(deadline.within(PATIENCE.ping_seconds), signal);
      if (deadline.passed) throw new StillRunning(say("no_connection_in_time"));
    }
    if (this.#socket !== null) return this.#socket;
    this.#connecting = true;
    try {
      return await this.#connectPatiently(deadline, signal);
    } finally {
      this.#connecting = false;
      this.#turn.notifyAll();
    }
  }

  async #connectPatiently(deadline: Deadline, signal: AbortSignal): Promise<Socket> {
    while (!deadline.passed) {
      let error: EverforgeError;
      try {
        const socket = await this.#connect(deadline, signal);
        this.#keep(socket, signal);
        this.door.met = true;
        this.door.tell(true);
        return socket;
      } catch (thrown) {
        error = this.#explained(thrown);
      }
      const pause = this.door.mayAskAgain(error, true) ? this.#patience.pause(error.retryAfterSeconds) : null;
      if (pause === null) throw error;
      await sleep(deadline.within(pause), signal);
    }
    throw new StillRunning(say("no_connection_in_time"));
  }

  /** It may have been closed while the connection was made. */
  #keep(socket: Socket, signal: AbortSignal): void {
    if (signal.aborted) socket.drop();
    checkSignal(signal);
    this.#socket = socket;
  }

  #explained(error: unknown): EverforgeError {
    const base_url = this.door.base_url;
    if (error instanceof Unreached) return this.door.unreachable(error);
    if (error instanceof Cut) return new Uncertain(say("cut", { url: base_url }), { cause: error.message });
    if (error instanceof Refusal) return errorOf(error.status, error.headers, error.body, base_url);
    if (error instanceof EverforgeError) return error; // of a browser's question why
    throw error;
  }

  async #connect(deadline: Deadline, signal: AbortSignal): Promise<Socket> {
    const socket = await platform().openSocket({
      url: this.door.url(`${this.#path}/connect`, { after: this.cursor }).replace(/^http/, "ws"),
      headers: this.door.headers,
      token: this.door.token,
      seconds: deadline.within(PATIENCE.open_seconds),
      signal,
      probe: () => this.door.send("GET", this.door.url(this.#path), {}, null, PATIENCE.open_seconds, signal),
    });
    try {
      const position = await this.#greeting(socket, deadline, signal);
      this.cursor ??= position;
    } catch (error) {
      socket.drop();
      throw error;
    }
    this.#connections++;
    this.#trust();
    return socket;
  }

  async #greeting(socket: Socket, deadline: Deadline, signal: AbortSignal): Promise<number> {
    const said = await socket.receive(deadline.within(PATIENCE.pong_seconds), signal);
    if (said === null) throw new Cut("it says nothing");
    const { type, position } = parse(said);
    if (type !== "connected" || !Number.isSafeInteger(position)) throw foreign(this.door.base_url);
    return position as number;
  }

  async #lost(socket: Socket, cut: Cut, deadline: Deadline, signal: AbortSignal): Promise<void> {
    this.#drop(socket);
    if (cut instanceof Closed) checkClosed(cut, this.door.base_url);
    this.door.tell(false);
    const pause = this.#patience.pause();
    if (pause === null) throw this.door.unreachable(cut);
    await sleep(deadline.within(pause), signal);
  }

  /** The next one who needs a connection makes one. */
  #drop(socket: Socket): void {
    if (this.#socket === socket) this.#socket = null;
    socket.drop();
  }

  /** Whoever waits here is told. */
  async close(): Promise<void> {
    const [socket, session] = [this.#socket, this.#session];
    this.#socket = null;
    session.abort(new ChannelClosed(say("closed")));
    this.#session = this.#begin();
    await socket?.close();
  }
}

/** Reasons after which there is no use in coming back. */
function checkClosed(closed: Closed, base_url: string): void {
  if (closed.status === 4001) throw revoked(base_url);
  if (closed.status === 4404) throw new MachineNotFound(say("machine_deleted"));
  if (closed.status === 1008) throw new ProtocolError(say("connection_ended", { url: base_url, why: closed.message }));
}

function good(reply: Fields): Fields {
  if (reply["type"] === "error") throw errorIn(reply);
  return reply;
}

function errorIn(frame: Fields): EverforgeError {
  return errorFrom(isObject(frame["error"]) ? frame["error"] : {});
}
