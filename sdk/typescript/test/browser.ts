/** The same in a page, for whoever drives the browser: `window.run({ steps, variables })`. */

import "../src/browser.js";
import { Driver, WrongStep, type Step } from "./steps/driver.js";
import type { Fields } from "./steps/matching.js";

interface Outcome {
  ok: boolean;
  /** Of the steps that went well. */
  done: number[];
  problem?: string;
}

async function run({ steps, variables }: { steps: Step[]; variables: Fields }): Promise<Outcome> {
  const done: number[] = [];
  try {
    await new Driver(variables).run(steps, (_step, number) => done.push(number));
    return { ok: true, done };
  } catch (error) {
    return { ok: false, done, problem: error instanceof WrongStep ? error.message : String(error) };
  }
}

Object.assign(window, { run });
