/** `everforge machine hibernate` and `everforge machine wake`. */

import type { Machine as MachineInfo } from "../../generated/api.js";
import type { Machine } from "../../node.js";
import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { print } from "../output.js";
import { waiting } from "../progress.js";
import { printJson } from "../tables.js";

export async function hibernate(given: Given): Promise<void> {
  await change(given, "saving", (machine) => machine.hibernate());
}

export async function wake(given: Given): Promise<void> {
  await change(given, "waking", (machine) => machine.wake());
}

async function change(given: Given, doing: string, act: (machine: Machine) => Promise<MachineInfo>): Promise<void> {
  const name = given.needed("name");
  const found = await machineNamed(name, (machine) => waiting(`${doing} ${name}`, () => act(machine)));
  if (given.json) printJson(found);
  else print(`${name} is ${found.state}`);
}
