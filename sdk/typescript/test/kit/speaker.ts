/** A server that says whatever a test wants, also what no server of ours would. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

import { WebSocketServer, type WebSocket } from "ws";

import { Everforge, type EverforgeOptions } from "../../src/surface.js";
import { VERSION } from "../../src/generated/version.js";

export type Act = (request: IncomingMessage, response: ServerResponse) => void;
export type Talk = (socket: WebSocket, connection: number) => void;

export class Speaker {
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #clients: Everforge[] = [];
  #connections = 0;

  private constructor(act: Act, talk: Talk | undefined) {
    this.#server = createServer((request, response) => {
      this.asked.push(`${request.method ?? ""} ${request.url ?? ""}`);
      response.setHeader("x-everforge-version", VERSION);
      act(request, response);
    });
    this.#server.on("connection", (socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
    });
    if (talk === undefined) return; // a handshake is a request as any other, then
    const sockets = new WebSocketServer({ server: this.#server, perMessageDeflate: false });
    sockets.on("connection", (socket) => {
      socket.on("error", () => undefined);
      talk(socket, this.#connections++);
    });
  }

  static async start(act: Act, talk?: Talk, port = 0): Promise<Speaker> {
    const made = new Speaker(act, talk);
    await new Promise<void>((done) => made.#server.listen(port, "127.0.0.1", done));
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#open.size;
  }

  client(options: EverforgeOptions = {}): Everforge {
    const made = new Everforge({ token: "id.secret", base_url: this.url, retry_seconds: 0, ...options });
    this.#clients.push(made);
    return made;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) await client.close();
    this.#server.closeAllConnections();
    for (const socket of this.#open) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }
}

/** A whole answer. */
export function say(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** Greets, and answers whatever is asked. */
export function polite(socket: WebSocket): void {
  socket.send(JSON.stringify({ type: "connected", position: -1 }));
  socket.on("message", (data: Buffer) => {
    const { request_id } = JSON.parse(data.toString()) as { request_id: number };
    socket.send(JSON.stringify({ type: "reply", request_id }));
  });
}

/** A repl of a server that goes away, and comes back a while later at the same address. */
export async function restarted(): Promise<{ told: boolean[] }> {
  const told: boolean[] = [];
  const first = await Speaker.start((_request, response) => say(response, {}), polite);
  const client = new Everforge({ token: "id.secret", base_url: first.url, on_connection: (connected) => told.push(connected) });
  const repl = await client.machine("m").repl().open();
  const port = Number(new URL(first.url).port);
  await first.stop();
  const asking = repl.ping();
  await new Promise((done) => setTimeout(done, 400));
  const second = await Speaker.start((_request, response) => say(response, {}), polite, port);
  try {
    await asking;
  } finally {
    await repl.close();
    await client.close();
    await second.stop();
  }
  return { told };
}
