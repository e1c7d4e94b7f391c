/** `everforge machine rollback` and `everforge machine reset`. */

import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { print } from "../output.js";
import { waiting } from "../progress.js";
import { nameOf } from "./snapshot.js";
import { printJson } from "../tables.js";
import { BadValue } from "../wrongusage.js";

export async function rollback(given: Given): Promise<void> {
  const name = given.needed("name");
  const snapshot = given.text("snapshot");
  const instruction = given.number("instruction");
  if (snapshot !== undefined && instruction !== undefined) throw new BadValue("give a snapshot or an instruction, not both", "--instruction");
  const discard = given.flag("discard");
  const done = await machineNamed(name, (machine) => waiting(`taking ${name} back`, () => machine.rollback(instruction ?? snapshot, { discard })));
  if (given.json) {
    printJson(done);
    return;
  }
  print(`${name} is back at ${nameOf(done.snapshot)}`);
  tellOfUndo(name, done.undo, discard);
}

export async function reset(given: Given): Promise<void> {
  const name = given.needed("name");
  const discard = given.flag("discard");
  const undo = await machineNamed(name, (machine) => waiting(`resetting ${name}`, () => machine.reset({ discard })));
  if (given.json) {
    printJson({ undo: undo ?? null });
    return;
  }
  print(`${name} is as new`);
  tellOfUndo(name, undo, discard);
}

function tellOfUndo(name: string, undo: string | null | undefined, discard: boolean): void {
  if (undo !== null && undo !== undefined) print(`undo with: everforge machine rollback ${name} ${undo}`);
  else if (discard) print("what was before is not kept");
}
