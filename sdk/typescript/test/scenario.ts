/** `node scenario.js SCENARIO.json VARIABLES.json`: does the steps, and says which of them went well. */

import { readFileSync } from "node:fs";

import "../src/index.js";
import { Driver, WrongStep, type Step } from "./steps/driver.js";
import type { Fields } from "./steps/matching.js";

const [scenario = "", variables = ""] = process.argv.slice(2);
const { steps } = JSON.parse(readFileSync(scenario, "utf8")) as { steps: Step[] };
try {
  const driver = new Driver(JSON.parse(readFileSync(variables, "utf8")) as Fields);
  await driver.run(steps, (step, number) => console.log(`${number} ${step.do} ${step.on ?? ""}`.trimEnd()));
} catch (error) {
  console.error(error instanceof WrongStep ? error.message : error);
  process.exitCode = 1;
}
