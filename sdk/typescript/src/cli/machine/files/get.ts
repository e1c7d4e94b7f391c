/** `everforge machine files get`. */

import { statSync } from "node:fs";
import { join } from "node:path";

import { NotAFile } from "../../../generated/errors.js";
import type { Machine } from "../../../node.js";
import { machineNamed } from "../../connection.js";
import { local } from "../../failures.js";
import type { Given } from "../../given.js";
import { print, putBytes } from "../../output.js";
import { transfer } from "../../progress.js";
import { printJson, size } from "../../tables.js";
import { BadValue } from "../../wrongusage.js";

export async function get(given: Given): Promise<void> {
  const path = given.needed("path");
  const to = given.text("local");
  await machineNamed(given.needed("name"), async (machine) => {
    if (to === "-") {
      for await (const chunk of machine.files.stream(path)) putBytes(chunk);
      return;
    }
    const target = targetOf(path, to);
    const done = await local(target, () => fetched(machine, path, target));
    if (given.json) printJson(done);
    else print("files" in done ? `${target}: ${String(done.files)} files` : `${target}: ${size(done.size_bytes)}`);
  });
}

/** Into a folder that is there, under its own name. */
function targetOf(path: string, to: string | undefined): string {
  if (to !== undefined && !isFolder(to)) return tidy(to);
  const own = nameOf(path);
  if (own === "" || own === "..") throw new BadValue("say where to, for this one", "LOCAL");
  return join(tidy(to ?? "."), own);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // whoever writes there says what is wrong
  }
}

/** Without doubled slashes and dots in it, but with what leads upwards: that may lead elsewhere, over a link. */
function tidy(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return (path.startsWith("/") ? "/" : "") + parts.join("/") || ".";
}

/** The last part of a path of the machine. */
function nameOf(path: string): string {
  return path.split("/").filter((part) => part !== "" && part !== ".").at(-1) ?? "";
}

type Done = { path: string; local: string } & ({ size_bytes: number } | { files: number });

async function fetched(machine: Machine, path: string, target: string): Promise<Done> {
  try {
    return { path, local: target, size_bytes: await transfer(path, (progress) => machine.files.download(path, target, { progress })) };
  } catch (error) {
    if (!(error instanceof NotAFile)) throw error;
    return { path, local: target, files: await transfer(path, (progress) => machine.files.downloadFolder(path, target, { progress })) };
  }
}
