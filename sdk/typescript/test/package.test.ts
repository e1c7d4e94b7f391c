/** What becomes of the package in other people's hands. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";

import { build } from "esbuild";
import { expect, test } from "vitest";

import { VERSION } from "../src/index.js";
import { PACKAGE } from "./kit/python.js";

const told = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as { version: string; dependencies: Record<string, string> };

test("a bundler that leaves out what is not used leaves the platform in", async () => {
  const contents = 'import { Everforge } from "./src/browser.ts"; try { new Everforge() } catch (error) { said = error.message }';
  const made = await build({ stdin: { contents, resolveDir: PACKAGE }, bundle: true, format: "iife", platform: "browser", write: false, minify: true, logLevel: "error" });
  const context = { said: "" };
  runInNewContext(made.outputFiles[0]?.text ?? "", context);
  expect(context.said).toBe("in a browser a client needs both: give token and base_url");
});

test("it has the version that it says, and one dependency", () => {
  expect(told.version).toBe(VERSION);
  expect(Object.keys(told.dependencies)).toEqual(["ws"]);
});
