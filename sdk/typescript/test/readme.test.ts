/** What the README shows is what a reader pastes: it has the right types, and runs. */

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { build, type Plugin } from "esbuild";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";

import { FakeServer } from "./kit/fakeserver.js";
import { PACKAGE } from "./kit/python.js";

const ENTRIES: Readonly<Record<string, string>> = { everforge: join(PACKAGE, "src", "index.ts"), "everforge/node": join(PACKAGE, "src", "node.ts") };
const text = readFileSync(join(PACKAGE, "README.md"), "utf8");
const program = Array.from(text.matchAll(/^```ts\n(.*?)^```/gms), ([, block]) => block).join("\n");

/** The package is what lies here. */
const OURS: Plugin = {
  name: "ours",
  setup(bundler) {
    bundler.onResolve({ filter: /^everforge(\/node)?$/ }, ({ path }) => ({ path: ENTRIES[path] }));
  },
};

let folder: string;
let server: FakeServer;
beforeAll(async () => {
  mkdirSync(join(PACKAGE, "dist-test"), { recursive: true });
  folder = mkdtempSync(join(PACKAGE, "dist-test", "readme-")); // beside the packages
  writeFileSync(join(folder, "program.ts"), program);
  server = await FakeServer.start();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.stop();
});

test("has examples with the right types", { timeout: 120_000 }, () => {
  const { config } = ts.readConfigFile(join(PACKAGE, "tsconfig.json"), (path) => ts.sys.readFile(path)) as { config: { compilerOptions: object } };
  const { options } = ts.convertCompilerOptionsFromJson({ ...config.compilerOptions, paths: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, [path]])) }, PACKAGE);
  const found = ts.getPreEmitDiagnostics(ts.createProgram([join(folder, "program.ts")], options));
  expect(found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "))).toEqual([]);
});

test("has examples that run, and say what they promise", { timeout: 60_000 }, async () => {
  const outfile = join(folder, "program.mjs");
  const common = { bundle: true, format: "esm", platform: "node", packages: "external", logLevel: "error" } as const;
  await build({ ...common, entryPoints: [join(folder, "program.ts")], outfile, plugins: [OURS] });
  const env = { PATH: process.env["PATH"], HOME: folder, EVERFORGE_URL: server.url, EVERFORGE_TOKEN: server.token };
  const { stdout } = await promisify(execFile)(process.execPath, [outfile], { env, timeout: 50_000 });
  const said = ["4.0", "false ZeroDivisionError: division by zero", "MachineNotFound", "line 0", "line 1", "line 2", "42", "10", "kept with the machine", "3", "42", "true EVERFORGE_TOKEN"];
  expect(stdout.trim().split("\n")).toEqual(said);
});
