/** `everforge machine list`. */

import { CHOICES, type ListedMachine } from "../../generated/api.js";
import { connected } from "../connection.js";
import type { Given } from "../given.js";
import { oneOf, pairs } from "../options.js";
import { onTerminal, print, put } from "../output.js";
import { dumps } from "../spelling.js";
import { moment, plain, printRows } from "../tables.js";

const HEADING = ["NAME", "STATE", "CREATED", "LAST USED", "MEMORY MB", "IMAGE", "TAGS"];
const IMAGE_CHARACTERS = 12; // of a digest, as many as tell one from another

export async function list(given: Given): Promise<void> {
  const state = oneOf(CHOICES.State, "--state", given.text("state"));
  const tags = pairs(given.texts("tag"), "--tag");
  const prefix = given.text("prefix");
  await connected(async (server) => {
    const machines = server.machines({ tags, state, prefix });
    if (given.json) await printAsJson(machines);
    else if (onTerminal.stdout) await printTable(machines, tags === undefined && !state && !prefix);
    else for await (const machine of machines) print(row(machine).map((cell) => plain(cell)).join("\t"));
  });
}

/** All of them first: the widest says how wide the columns are. */
async function printTable(machines: AsyncIterable<ListedMachine>, all: boolean): Promise<void> {
  const rows: unknown[][] = [];
  for await (const machine of machines) rows.push(row(machine));
  if (rows.length > 0) printRows(HEADING, rows);
  else print(all ? "No machines; `everforge machine new` makes one." : "No such machines.");
}

function row(machine: ListedMachine): unknown[] {
  const image = machine.image.slice(0, IMAGE_CHARACTERS);
  return [machine.name, machine.state, moment(machine.created_at), moment(machine.last_used_at), machine.memory_mb, image, machine.tags];
}

/** As they come: a server may have very many. */
async function printAsJson(machines: AsyncIterable<ListedMachine>): Promise<void> {
  let separator = "[";
  for await (const machine of machines) {
    put(separator + dumps(machine));
    separator = ",\n ";
  }
  print(separator === "[" ? "[]" : "]");
}
