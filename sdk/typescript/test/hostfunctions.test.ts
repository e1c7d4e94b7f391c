/** Functions of this program that code in a machine calls: whatever they do, the code gets an answer. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { Everforge, errors, type Machine } from "../src/index.js";
import { FakeServer } from "./kit/fakeserver.js";
import { Speaker, say } from "./kit/speaker.js";

let server: FakeServer;
let client: Everforge;
let machine: Machine;
beforeAll(async () => {
  server = await FakeServer.start();
  client = new Everforge({ token: server.token, base_url: server.url });
  machine = await client.create();
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

test("are called with what the code gave, names last", async () => {
  const calls: unknown[][] = [];
  const functions = { ask: (...args: unknown[]) => (calls.push(args), { answer: [1, null, "é"] }) };
  const result = await machine.run("ask(1, 'two', three=[3])['answer'], ask()", { functions });
  expect(result.value).toBe("([1, None, 'é'], {'answer': [1, None, 'é']})");
  expect(calls).toEqual([[1, "two", { three: [3] }], []]);
});

test("may take their time, and answer on a repl, too", async () => {
  await using repl = await machine.repl().open();
  const functions = { slow: async (n: number) => await new Promise((resolve) => setTimeout(() => resolve(n + 1), 50)) };
  expect((await repl.run("slow(slow(1))", { functions })).value).toBe("3");
});

describe("that fail", () => {
  const round: Record<string, unknown> = {};
  round["round"] = round;
  const failing: Record<string, () => unknown> = {
    "throws an error": () => {
      throw new RangeError("too far");
    },
    "rejects": () => Promise.reject(new Error("later")),
    "throws what is no error": () => {
      throw { toString: () => "odd" } as unknown as Error;
    },
    "returns no JSON": () => round,
    "returns no number": () => NaN,
    "returns a function": () => () => 1,
    "returns a Map": () => new Map([[1, 2]]),
    "returns too much": () => "x".repeat(1024 * 1024),
    "throws half of a pair": () => {
      throw new Error("\ud800");
    },
  };
  test.each(Object.entries(failing))("raise in the machine: one that %s", async (_, act) => {
    const result = await machine.run("try:\n    act()\nexcept Exception as e:\n    print(type(e).__name__, e)", { functions: { act } });
    expect(result.error).toBeNull();
    expect(result.stdout.length).toBeGreaterThan(10);
    expect(result.stdout.length).toBeLessThan(1000);
  });

  test("say which error it was", async () => {
    const functions = { act: failing["throws an error"] as () => unknown };
    expect((await machine.run("act()", { functions })).error).toContain("RangeError: too far");
  });
});

test("cannot wait for the machine that waits for them", async () => {
  const functions = {
    again: async () => {
      await Promise.resolve();
      return (await machine.run("1")).value;
    },
  };
  const result = await machine.run("again()", { functions });
  expect(result.error).toContain("waits for the answer of this function");
});

test("that have names Python does not take are refused before anything is run", async () => {
  const before = (await machine.run("1")).instruction;
  for (const name of ["a b", "1a", "class", "", "a-b"]) await expect(machine.run("1", { functions: { [name]: () => 1 } })).rejects.toThrow(errors.InvalidInput);
  await expect(machine.run("1", { functions: { ask: 7 as never } })).rejects.toThrow(errors.InvalidInput);
  expect((await machine.run("1")).instruction).toBe(before + 1);
});

test("are not called again for a result that is asked for again", async () => {
  let calls = 0;
  const functions = { count: () => ++calls };
  const instruction = await machine.exec("count() + count()", { functions });
  expect((await instruction.result()).value).toBe("3");
  expect((await instruction.result()).value).toBe("3");
  expect((await machine.instruction(instruction.number).result({ functions })).value).toBe("3");
  expect(calls).toBe(2);
});

test("are called once for each call, though the answer could not be sent the first time", async () => {
  let [calls, answers] = [0, 0];
  const called = { type: "called", position: 0, cursor: 0, seq: 0, instruction: 0, call: 0, function: "ask", args: [] };
  const ended = { type: "ended", position: 1, cursor: 1, seq: 1, instruction: 0, end: "value", runtime_ms: 1, value: "7" };
  const speaker = await Speaker.start((request, response) => {
    const { method, url = "" } = request;
    if (method === "POST" && url.endsWith("/exec")) say(response, { instruction_seq: 0, machine: "m", interrupted: false });
    else if (method === "POST" && ++answers === 1) response.socket?.destroy();
    else if (method === "POST") say(response, { answered: true });
    else if (!url.includes("follow")) say(response, { entries: [called], more: false, position: 0 });
    else response.writeHead(200).write([called, ...(answers > 0 ? [ended] : [])].map((one) => `${JSON.stringify(one)}\n`).join(""));
  });
  try {
    const instruction = await speaker.client().machine("m").exec("ask()", { functions: { ask: () => ++calls } });
    await expect(instruction.result()).rejects.toThrow(errors.Uncertain);
    expect((await instruction.result()).value).toBe("7");
    expect([calls, answers]).toEqual([1, 2]);
  } finally {
    await speaker.stop();
  }
});
