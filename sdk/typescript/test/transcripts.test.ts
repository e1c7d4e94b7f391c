/** Every transcript of the contract, replayed: what this SDK asks, and what it makes of the answers, is what all languages do. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import "../src/index.js";
import { Replay, stepsOf, transcripts } from "./kit/replay.js";
import { Driver, WrongStep } from "./steps/driver.js";

let replay: Replay;
beforeAll(async () => {
  replay = await Replay.start();
});
afterAll(async () => {
  await replay.stop();
});

describe("transcripts", () => {
  test("are all there", () => {
    expect(transcripts().length).toBeGreaterThan(20);
  });

  test.each(transcripts())("%s", async (name) => {
    await new Driver(replay.variables(name)).run(stepsOf(name));
    expect(await replay.problems(name)).toEqual([]);
  });

  test("that are not met are told of", async () => {
    await replay.again("whoami");
    const wrong = new Driver(replay.variables("whoami")).run([{ do: "whoami", gives: { account: "nobody at all" } }]);
    await expect(wrong).rejects.toThrow(WrongStep);
    await expect(new Driver(replay.variables("whoami")).run([{ do: "machines" }])).rejects.toThrow(WrongStep);
    expect(await replay.problems("whoami")).not.toEqual([]);
  });
});
