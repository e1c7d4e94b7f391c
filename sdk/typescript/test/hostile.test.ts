/** Servers that are broken, or not ours, or mean harm: every one of them is met with an error of ours, in time and in bounded memory. */

import { inspect } from "node:util";

import { afterEach, describe, expect, test } from "vitest";

import { errors } from "../src/index.js";
import { Inbox } from "../src/inbox.js";
import { Cut } from "../src/failures.js";
import { Lines } from "../src/tape.js";
import { Speaker, restarted, say, type Act, type Talk } from "./kit/speaker.js";

const MEBIBYTE = "x".repeat(1024 * 1024);
const NAMED = { name: "m" };

const speakers: Speaker[] = [];
afterEach(async () => {
  for (const one of speakers.splice(0)) await one.stop();
});

async function speaking(act: Act, talk?: Talk): Promise<Speaker> {
  const made = await Speaker.start(act, talk);
  speakers.push(made);
  return made;
}

/** Goes on for as long as somebody listens. Told when nobody does. */
function endlessly(status: number, ended: () => void): Act {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    const more = (): void => {
      while (!response.destroyed && response.write(MEBIBYTE));
    };
    response.on("drain", more).on("close", ended);
    more();
  };
}

describe("an answer", () => {
  test.each([
    [200, 64],
    [500, 1],
  ])("that never ends is cut off (HTTP %i after %i MiB)", async (status, most) => {
    let ended = (): void => undefined;
    const isEnded = new Promise<void>((resolve) => (ended = resolve));
    const client = (await speaking(endlessly(status, ended))).client();
    await expect(client.whoami()).rejects.toThrow(`the server's answer is longer than ${most * 1024 * 1024} bytes`);
    await isEnded;
  });

  test("of the wrong shape is told as that, whatever is wrong", async () => {
    const bodies: [unknown, string][] = [
      ["", "is not JSON"],
      ["[1]", "is not a JSON object"],
      ["{}", "lacks account"],
      ["\ufeff{", "is not JSON"],
    ];
    for (const [body, sentence] of bodies) {
      const client = (await speaking((_request, response) => say(response, body))).client();
      await expect(client.whoami(), String(body)).rejects.toThrow(errors.ProtocolError);
      await expect(client.whoami(), String(body)).rejects.toThrow(sentence);
    }
    const lists = (await speaking((_request, response) => say(response, { machines: 7, next: null }))).client();
    await expect(lists.machines().next()).rejects.toThrow(errors.ProtocolError);
    const fork = (await speaking((_request, response) => say(response, { machine_names: [] }))).client();
    await expect(fork.machine("m").fork()).rejects.toThrow(errors.ProtocolError);
  });

  test("that leads elsewhere is not followed: the token is for this server", async () => {
    const other = await speaking((_request, response) => say(response, { account: "thief" }));
    const client = (await speaking((_request, response) => response.writeHead(307, { location: `${other.url}/v1/whoami` }).end())).client();
    await expect(client.whoami()).rejects.toThrow("is not an Everforge server (HTTP 307)");
    expect(other.asked).toEqual([]);
  });

  test("that does not come is waited for no longer than the caller has", async () => {
    const silent = await speaking((request, response) => {
      if (request.method === "POST") say(response, { instruction_seq: 0, machine: "m", interrupted: false });
    });
    const began = performance.now();
    await expect(silent.client().machine("m").run("1", { wait_seconds: 0.3 })).rejects.toThrow(errors.StillRunning);
    expect(performance.now() - began).toBeLessThan(5000);
  });

  test("that is cut in the middle is asked for again, where that is safe", async () => {
    let times = 0;
    const half: Act = (_request, response) => {
      times++;
      if (times > 2) say(response, { account: "ada" });
      else response.writeHead(200, { "content-length": "100" }).write("{", () => response.socket?.destroy());
    };
    const server = await speaking(half);
    expect(await server.client({ retry_seconds: 5 }).whoami()).toBe("ada");
    times = 0;
    await expect(server.client({ retry_seconds: 5 }).machine("m").interrupt()).rejects.toThrow(errors.Uncertain);
    expect(times).toBe(1);
  });

  test("of a stream with nonsense in it is an error and no endless loop", async () => {
    for (const line of ["nonsense\n", '{"type":"output","position":"x","cursor":1}\n', "[]\n", '{"type":"ended","position":1,"cursor":1,"instruction":0}\n']) {
      const server = await speaking((_request, response) => response.writeHead(200, { "content-type": "application/x-ndjson" }).write(line));
      await expect(server.client().machine("m").instruction(0).result(), line).rejects.toThrow(errors.ProtocolError);
    }
  });

  test("with a prototype in it changes nothing here", async () => {
    const body = '{"code":"__proto__","message":"x","details":{"__proto__":{"bad":1}}}';
    const client = (await speaking((_request, response) => say(response, body, 400))).client();
    await expect(client.whoami()).rejects.toMatchObject({ code: "__proto__" });
    expect(({} as Record<string, unknown>)["bad"]).toBeUndefined();
  });
});

describe("a WebSocket", () => {
  const hello = { type: "connected", position: -1 };

  test("whose frame is far too long is dropped, and the repl comes back", async () => {
    const server = await speaking(
      (_request, response) => say(response, NAMED),
      (socket, connection) => {
        socket.send(JSON.stringify(hello));
        socket.on("message", (data: Buffer) => {
          const { request_id } = JSON.parse(data.toString()) as { request_id: number };
          socket.send(connection === 0 ? MEBIBYTE.repeat(17) : JSON.stringify({ type: "reply", request_id }));
        });
      },
    );
    await using repl = server.client().machine("m").repl();
    await repl.ping();
    expect(server.asked).toEqual([]);
  });

  test("that greets with something else is not ours", async () => {
    for (const greeting of ["hello", "{}", '{"type":"connected"}', '{"type":"connected","position":1.5}']) {
      const server = await speaking((_request, response) => say(response, NAMED), (socket) => socket.send(greeting));
      await expect(server.client().machine("m").repl().open(), greeting).rejects.toThrow(/is not an Everforge server|is not JSON/);
    }
  });

  test("of a server that restarts is made again", async () => {
    expect(await restarted()).toEqual({ told: [false, true] });
  });

  test("that is refused says why", async () => {
    const client = (await speaking((_request, response) => say(response, { code: "MachineNotFound", message: "there is no machine m" }, 404))).client();
    await expect(client.machine("m").repl().open()).rejects.toThrow(errors.MachineNotFound);
  });

  test("that is refused without an end is not read without one", async () => {
    let ended = (): void => undefined;
    const isEnded = new Promise<void>((resolve) => (ended = resolve));
    const client = (await speaking(endlessly(500, ended))).client();
    await expect(client.machine("m").repl().open()).rejects.toThrow(errors.VersionMismatch);
    await isEnded;
  });
});

describe("what is kept", () => {
  test("of a line that does not end is bounded", () => {
    const lines = new Lines();
    const chunk = new TextEncoder().encode(MEBIBYTE);
    expect(() => {
      for (let i = 0; i < 70; i++) lines.add(chunk);
    }).toThrow(errors.ProtocolError);
  });

  test("of lines is whole, however the bytes are cut", () => {
    const lines = new Lines();
    const found: string[] = [];
    for (const byte of new TextEncoder().encode("é\n\n\u{1f600}a\nrest")) {
      lines.add(Uint8Array.of(byte));
      for (let line = lines.take(); line !== null; line = lines.take()) found.push(line);
    }
    expect(found).toEqual(["é", "", "\u{1f600}a"]);
  });

  test("of frames is said to be full, and given out in order before the end is told", async () => {
    const inbox = new Inbox();
    const { signal } = new AbortController();
    for (let i = 0; i < 1000; i++) inbox.put(String(i));
    expect(inbox.isFull).toBe(true);
    inbox.end(new Cut("gone"));
    for (let i = 0; i < 1000; i++) expect(await inbox.take(1, signal)).toBe(String(i));
    expect(inbox.isFull).toBe(false);
    await expect(inbox.take(1, signal)).rejects.toThrow("gone");
  });

  test("of a token is in nothing that a program prints", async () => {
    const client = (await speaking(() => undefined)).client();
    const machine = client.machine("m");
    for (const thing of [client, machine, machine.files, machine.repl(), machine.instruction(0), client.tokens]) {
      expect(inspect(thing, { depth: 10, showHidden: true }) + JSON.stringify(thing)).not.toContain("id.secret");
    }
  });
});
