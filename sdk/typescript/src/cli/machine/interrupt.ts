/** `everforge machine interrupt`. */

import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { print } from "../output.js";
import { printJson } from "../tables.js";

export async function interrupt(given: Given): Promise<void> {
  const done = await machineNamed(given.needed("name"), (machine) => machine.interrupt({ pending: given.flag("pending") }));
  if (given.json) printJson({ interrupted: done });
  else print(done ? "interrupted" : "nothing was running");
}
