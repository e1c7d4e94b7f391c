/** `everforge machine show`. */

import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { printFields, printJson, size } from "../tables.js";

export async function show(given: Given): Promise<void> {
  const found = await machineNamed(given.needed("name"), (machine) => machine.info());
  if (given.json) {
    printJson(found);
    return;
  }
  const bytes = (count: number): string => `${String(count)} (${size(count)})`;
  const shown = { ...found, memory_bytes: bytes(found.memory_bytes), disk_bytes: bytes(found.disk_bytes) };
  printFields(Object.entries(shown).filter(([field]) => !field.startsWith("has_pending")));
}
