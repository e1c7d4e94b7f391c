/** `everforge machine files delete`. */

import { machineNamed } from "../../connection.js";
import type { Given } from "../../given.js";
import { print } from "../../output.js";
import { printJson } from "../../tables.js";

export async function remove(given: Given): Promise<void> {
  const path = given.needed("path");
  await machineNamed(given.needed("name"), (machine) => machine.files.delete(path, { recursive: given.flag("recursive") }));
  if (given.json) printJson({ deleted: true });
  else print(`deleted ${path}`);
}
