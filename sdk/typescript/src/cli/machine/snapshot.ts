/** `everforge machine snapshot`. */

import type { Snapshot } from "../../generated/api.js";
import type { Machine } from "../../node.js";
import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { print } from "../output.js";
import { waiting } from "../progress.js";
import { moment, printJson, printRows, size } from "../tables.js";
import { BadValue } from "../wrongusage.js";

const HEADING = ["ID", "NAME", "CREATED", "AFTER", "REASON", "SIZE"];

export async function snapshot(given: Given): Promise<void> {
  const asked = [given.flag("listing"), given.text("gone") !== undefined, given.text("label") !== undefined];
  if (asked.filter(Boolean).length > 1) throw new BadValue("give one of --name, --list and --delete");
  await machineNamed(given.needed("name"), async (machine) => {
    const gone = given.text("gone");
    if (given.flag("listing")) await list(machine, given.json);
    else if (gone !== undefined) await remove(machine, gone, given.json);
    else await take(machine, given.text("label"), given.json);
  });
}

async function list(machine: Machine, json: boolean): Promise<void> {
  const found = await machine.snapshots();
  if (json) printJson(found);
  else printRows(HEADING, found.map((one) => [one.id, one.name, moment(one.created_at), after(one), one.reason, size(one.size_bytes)]));
}

/** What one calls it. */
export function nameOf({ name, id }: Snapshot): string {
  return name === null || name === "" ? id : name;
}

function after(one: Snapshot): string {
  return one.instruction === null ? "-" : `instruction ${String(one.instruction)}`;
}

async function remove(machine: Machine, gone: string, json: boolean): Promise<void> {
  await machine.deleteSnapshot(gone);
  if (json) printJson({ deleted: true });
  else print(`deleted ${gone}`);
}

async function take(machine: Machine, label: string | undefined, json: boolean): Promise<void> {
  const taken = await waiting(`saving ${machine.name}`, () => machine.snapshot(label));
  if (json) printJson(taken);
  else print(taken.id);
}
