/** `everforge usage`. */

import { connected } from "./connection.js";
import type { Given } from "./given.js";
import { printFields, printJson, size } from "./tables.js";

export async function usage(given: Given): Promise<void> {
  const found = await connected((server) => server.usage());
  if (given.json) {
    printJson(found);
    return;
  }
  const { quota, ...used } = { ...found, disk_bytes: `${String(found.disk_bytes)} (${size(found.disk_bytes)})` };
  printFields(Object.entries(used));
  printFields(limits(quota ?? {}).map(([name, value]) => [`quota: ${name}`, value]));
}

/** 0 is no limit. */
export function limits(quota: object): [string, unknown][] {
  return Object.entries(quota).map(([name, value]: [string, unknown]) => [name, value === 0 ? "no limit" : value]);
}
