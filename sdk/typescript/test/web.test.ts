/** The SDK of browsers, with the `fetch` of Node: the transcripts, and what a page alone meets. A real browser is driven by the scenario's test. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";

import { Everforge, errors } from "../src/browser.js";
import { Replay, stepsOf, transcripts } from "./kit/replay.js";
import { Speaker, restarted, say } from "./kit/speaker.js";
import { Driver } from "./steps/driver.js";

/** What a page does otherwise: it may not say who it is, and has to ask once more why a WebSocket was refused. */
const NOT_OF_PAGES: readonly string[] = ["whoami", "repl_refused"];

let replay: Replay;
const speakers: Speaker[] = [];
beforeAll(async () => {
  Object.assign(globalThis, { WebSocket, location: new URL("http://page.example.org/app") });
  replay = await Replay.start();
});
afterEach(async () => {
  for (const one of speakers.splice(0)) await one.stop();
});
afterAll(async () => {
  await replay.stop();
});

describe("transcripts in a page", () => {
  test.each(transcripts().filter((name) => !NOT_OF_PAGES.includes(name)))("%s", async (name) => {
    await new Driver(replay.variables(name)).run(stepsOf(name));
    expect(await replay.problems(name)).toEqual([]);
  });
});

describe("a page", () => {
  async function speaking(...given: Parameters<typeof Speaker.start>): Promise<Speaker> {
    const made = await Speaker.start(...given);
    speakers.push(made);
    return made;
  }

  test("must say where its server is", () => {
    expect(() => new Everforge()).toThrow(errors.ConfigurationBad);
    expect(() => new Everforge({ token: "id.secret" })).toThrow("give token and base_url");
  });

  test("has no files of a computer, and can upload a Blob", async () => {
    let sent = "";
    const server = await speaking((request, response) => {
      request.on("data", (chunk: Buffer) => (sent += chunk.toString()));
      request.on("end", () => say(response, { path: "a", size_bytes: sent.length }));
    });
    const { files } = server.client().machine("m");
    await expect(files.upload("/etc/passwd", "a")).rejects.toThrow(errors.InvalidInput);
    await expect(files.download("a", "/tmp/a")).rejects.toThrow("there are no files of a computer in a browser");
    const told: number[][] = [];
    await files.upload(new Blob(["con", "tent"]), "a", { progress: (...how) => told.push(how as number[]) });
    expect([sent, told]).toEqual(["content", [[7, 7]]]);
  });

  test("asks why a WebSocket was refused, and says what the server says", async () => {
    const server = await speaking((_request, response) => say(response, { code: "MachineNotFound", message: "there is no machine m" }, 404));
    await expect(server.client().machine("m").repl().open()).rejects.toThrow("there is no machine m");
    expect(server.asked).toEqual(["GET /v1/machine/m/connect?_forevervm_jwt=id.secret", "GET /v1/machine/m"]);
  });

  test("waits for a server that restarts", async () => {
    expect(await restarted()).toEqual({ told: [false, true] });
  });

  test("tells a server that is gone from one that does not talk to it", async () => {
    const server = await speaking((_request, response) => say(response, { account: "ada" }));
    const [client, url] = [server.client(), server.url];
    const real = globalThis.fetch;
    // As a browser does where the server does not allow the page's origin.
    globalThis.fetch = async (address, given) => {
      if (given?.mode !== "no-cors") throw new TypeError("Failed to fetch");
      return await real(address, given);
    };
    try {
      await expect(client.whoami()).rejects.toThrow(`the server at ${url} does not talk to pages of http://page.example.org`);
    } finally {
      globalThis.fetch = real;
    }
    expect(await client.whoami()).toBe("ada");
    await server.stop();
    await expect(new Everforge({ token: "id.secret", base_url: url, retry_seconds: 0 }).whoami()).rejects.toThrow(errors.Unreachable);
  });

  test("is cut off when more comes than anybody takes, and gets the rest when it comes back", async () => {
    const lines = 3000;
    const server = await speaking(
      () => undefined,
      (socket, connection) => {
        socket.send(JSON.stringify({ type: "connected", position: -1 }));
        const first = connection === 0 ? 0 : seen + 1;
        for (let i = first; i < lines; i++) socket.send(JSON.stringify({ type: "output", position: i, cursor: i, seq: i, instruction: 0, stream: "stdout", lines: [`${i}`] }));
      },
    );
    let seen = -1;
    await using repl = server.client().machine("m").repl({ after: -1 });
    const found: number[] = [];
    for await (const entry of repl.entries()) {
      seen = entry.position;
      found.push(seen);
      if (seen === lines - 1) break;
    }
    expect(found).toEqual([...Array(lines).keys()]);
  });
});
