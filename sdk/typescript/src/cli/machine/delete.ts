/** `everforge machine delete`. */

import { confirm } from "../asking.js";
import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { flush, onTerminal, print } from "../output.js";
import { waiting } from "../progress.js";
import { printJson } from "../tables.js";

export async function remove(given: Given): Promise<void> {
  const names = given.texts("names");
  if (!given.flag("yes") && onTerminal.stdin && onTerminal.stderr) await confirm(`Delete ${names.join(", ")} for ever?`);
  const deleted: string[] = [];
  for (const name of names) {
    await machineNamed(name, (machine) => waiting(`deleting ${name}`, () => machine.delete()));
    deleted.push(name);
    if (given.json) continue;
    print(`deleted ${name}`);
    flush();
  }
  if (given.json) printJson({ deleted });
}
