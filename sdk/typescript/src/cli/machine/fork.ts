/** `everforge machine fork`. */

import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { print } from "../output.js";
import { waiting } from "../progress.js";
import { printJson } from "../tables.js";
import { BadValue } from "../wrongusage.js";

export async function fork(given: Given): Promise<void> {
  const name = given.needed("name");
  const names = given.texts("new");
  const count = given.number("count");
  if (names.length > 0 && count !== undefined && count !== names.length) throw new BadValue(`${String(names.length)} names were given`, "--count");
  const made = await machineNamed(name, (machine) =>
    waiting(`copying ${name}`, () => (names.length > 0 ? machine.forks(undefined, { names }) : machine.forks(count ?? 1))),
  );
  const machine_names = made.map((copy) => copy.name);
  if (given.json) printJson({ machine_names });
  else print(machine_names.join("\n"));
}
