/** `everforge secret ...`: values that machines use and never see. */

import { CHOICES } from "../generated/api.js";
import { InvalidInput } from "../generated/errors.js";
import { askHidden } from "./asking.js";
import { connected } from "./connection.js";
import type { Given } from "./given.js";
import { among } from "./options.js";
import { onTerminal, print } from "./output.js";
import { readAll } from "./stdin.js";
import { moment, printJson, printRows } from "./tables.js";

const VALUE_BYTES_MAX = 1024 * 1024;
const HEADING = ["NAME", "HOSTS", "HEADER", "CHANGED", "PLACEHOLDER"];

export async function set(given: Given): Promise<void> {
  const places = among(CHOICES.Place, "--into", given.texts("into"));
  const value = await valueOf();
  const wanted = { hosts: given.texts("host"), header: given.text("header"), places: places.length > 0 ? places : undefined };
  const made = await connected((server) => server.secrets.set(given.needed("name"), value, wanted));
  if (given.json) printJson(made);
  else print(`Machines find ${made.placeholder} in $${made.name}; the value goes to ${made.hosts.join(", ")} and nowhere else.`);
}

/** Never from the command line, which others see. */
async function valueOf(): Promise<string> {
  if (onTerminal.stdin) return askHidden("Value");
  const found = (await readAll(VALUE_BYTES_MAX)).subarray(0, VALUE_BYTES_MAX);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(found).replace(/[\r\n]+$/, "");
  } catch {
    throw new InvalidInput("what came on standard input is not text: a secret's value is 8 to 4096 characters of ASCII, so give bytes as base64");
  }
}

export async function list(given: Given): Promise<void> {
  const found = await connected((server) => server.secrets.list());
  if (given.json) printJson(found);
  else printRows(HEADING, found.map((s) => [s.name, s.hosts.join(" "), s.header, moment(s.changed_at), s.placeholder]));
}

export async function remove(given: Given): Promise<void> {
  const name = given.needed("name");
  await connected((server) => server.secrets.delete(name));
  if (given.json) printJson({ deleted: true });
  else print(`deleted ${name}`);
}
