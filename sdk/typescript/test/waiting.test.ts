/** Who waits for a machine can be told to stop, and what waits when something is closed is told so. Against a real server, on the engine of tests. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { Everforge, errors, type Machine } from "../src/index.js";
import { FOR_EVER, FakeServer } from "./kit/fakeserver.js";

let server: FakeServer;
let client: Everforge;
const made: Everforge[] = [];
beforeAll(async () => {
  server = await FakeServer.start();
  client = connect();
});
afterEach(async () => {
  for await (const { name } of client.machines()) await client.machine(name).delete();
});
afterAll(async () => {
  for (const one of made) await one.close();
  await server.stop();
});

function connect(signal?: AbortSignal): Everforge {
  const one = new Everforge({ token: server.token, base_url: server.url, signal });
  made.push(one);
  return one;
}

/** Aborted as soon as the code has written its first line. */
function atFirstLine(): { signal: AbortSignal; on_stdout: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, on_stdout: () => controller.abort() };
}

async function states(machine: Machine): Promise<string[]> {
  const found: string[] = [];
  for await (const { state } of machine.instructions()) found.push(state);
  return found;
}

describe("an AbortSignal", () => {
  test("ends the waiting of run, and not the instruction", async () => {
    const machine = await client.create();
    await expect(machine.run(FOR_EVER, atFirstLine())).rejects.toMatchObject({ name: "AbortError" });
    expect(await states(machine)).toEqual(["running"]);
    expect(await machine.interrupt()).toBe(true);
    expect((await machine.instruction(0).result()).end).toBe("interrupted");
  });

  test("ends a stream with what it was aborted with", async () => {
    const machine = await client.create();
    const [controller, why] = [new AbortController(), new Error("enough")];
    const lines: string[] = [];
    const reading = (async () => {
      for await (const line of machine.stream(FOR_EVER, { signal: controller.signal })) {
        lines.push(line.text);
        controller.abort(why);
      }
    })();
    await expect(reading).rejects.toBe(why);
    expect(lines).toEqual(["begun"]);
  });

  test("ends the waiting on a repl, which can be used again at once", async () => {
    const machine = await client.create();
    await using repl = await machine.repl().open();
    await expect(repl.run(FOR_EVER, atFirstLine())).rejects.toMatchObject({ name: "AbortError" });
    expect(await repl.interrupt()).toBe(true);
    expect((await repl.run("6 * 7")).value).toBe("42");
  });

  test("leaves others that wait on the same repl alone", async () => {
    const machine = await client.create();
    await using repl = await machine.repl().open();
    const controller = new AbortController();
    const first = repl.run("sleep(0.5)");
    const second = repl.run("2", { signal: controller.signal });
    const third = repl.run("3");
    controller.abort();
    await expect(second).rejects.toMatchObject({ name: "AbortError" });
    expect([(await first).end, (await third).value]).toEqual(["value", "3"]);
  });

  test("that is aborted already lets nothing be asked", async () => {
    const signal = AbortSignal.abort();
    const machine = await client.create();
    await expect(machine.run("x = 1", { signal })).rejects.toMatchObject({ name: "AbortError" });
    await expect(machine.repl().open({ signal })).rejects.toMatchObject({ name: "AbortError" });
    await expect(machine.files.write("x", "y", { signal })).rejects.toMatchObject({ name: "AbortError" });
    await expect(client.create({ signal })).rejects.toMatchObject({ name: "AbortError" });
    expect(await states(machine)).toEqual([]);
    expect(await machine.files.exists("x")).toBe(false);
  });

  test("of a client ends all that it waits for", async () => {
    const machine = await client.create();
    const controller = new AbortController();
    const mine = connect(controller.signal).machine(machine.name);
    const running = mine.run(FOR_EVER, { on_stdout: () => controller.abort(new Error("the page is left")) });
    await expect(running).rejects.toThrow("the page is left");
    await expect(mine.info()).rejects.toThrow("the page is left");
  });

  test("ends the reading of a file", async () => {
    const machine = await client.create();
    await machine.files.write("large", new Uint8Array(3_000_000));
    const controller = new AbortController();
    const parts: number[] = [];
    const reading = (async () => {
      for await (const chunk of machine.files.stream("large", { signal: controller.signal })) {
        parts.push(chunk.length);
        controller.abort();
      }
    })();
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
    expect(parts.length).toBe(1);
  });
});

describe("closing", () => {
  test("a client tells whoever waits for it", async () => {
    const machine = await client.create();
    const other = connect();
    const mine = other.machine(machine.name);
    const repl = await mine.repl().open();
    let begun = (): void => undefined;
    const isRunning = new Promise<void>((resolve) => (begun = resolve));
    const waiting: Promise<unknown>[] = [mine.run(FOR_EVER, { on_stdout: begun })];
    await isRunning;
    const second = await repl.exec("1");
    waiting.push(second.result(), repl.entries().next(), mine.instruction(0).result());
    const outcomes = Promise.allSettled(waiting);
    await other.close();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: "rejected", reason: expect.any(errors.ClientError) as Error });
    await expect(mine.info()).rejects.toThrow("this client is closed");
    expect(await states(machine)).toEqual(["running", "queued"]);
  });

  test("a repl in the middle of a run leaves the result to be had from the tape", async () => {
    const machine = await client.create();
    const repl = await machine.repl().open();
    const result = await repl.run("tell('begun')\nsleep(0.5)", { on_stdout: () => void repl.close() });
    expect([result.end, result.stdout]).toEqual(["value", "begun\n"]);
  });

  test("a repl ends its entries, and the next instruction opens it again", async () => {
    const machine = await client.create();
    const repl = await machine.repl().open();
    const heard = (async () => {
      const types: string[] = [];
      for await (const entry of repl.entries()) types.push(entry.type);
      return types;
    })();
    await repl.run("1");
    await repl.close();
    expect(await heard).toContain("ended");
    expect((await repl.run("2")).value).toBe("2");
    await repl.close();
    await repl.close();
  });

  test("a stream early gives its connection back, and the instruction goes on", async () => {
    const machine = await client.create();
    for await (const line of machine.stream(FOR_EVER)) {
      expect(line.text).toBe("begun");
      break;
    }
    expect(await states(machine)).toEqual(["running"]);
  });
});

test("wait_seconds is how long the caller has, and the instruction goes on", async () => {
  const machine = await client.create();
  await expect(machine.run(FOR_EVER, { wait_seconds: 0.3 })).rejects.toThrow(errors.StillRunning);
  expect(await states(machine)).toEqual(["running"]);
});
