/** `everforge machine files list`. */

import type { File } from "../../../generated/api.js";
import { machineNamed } from "../../connection.js";
import type { Given } from "../../given.js";
import { moment, printJson, printRows } from "../../tables.js";

const HEADING = ["MODE", "SIZE", "MODIFIED", "NAME"];
const KINDS: Readonly<Record<string, string>> = { folder: "d", link: "l", file: "-" };

export async function list(given: Given): Promise<void> {
  const found: File[] = [];
  await machineNamed(given.needed("name"), async (machine) => {
    for await (const file of machine.files.list(given.text("path") ?? "")) found.push(file);
  });
  if (given.json) printJson(found);
  else printRows(HEADING, found.map(row));
}

function row(file: File): unknown[] {
  const named = file.target === null ? file.name : `${file.name} -> ${file.target}`;
  return [(KINDS[file.kind] ?? "?") + permissions(file.mode), file.size_bytes, moment(file.modified_at), named];
}

/** As `ls -l` shows them. */
export function permissions(mode: number): string {
  const special = [[0o4000, "s"], [0o2000, "s"], [0o1000, "t"]] as const;
  return special.map(([bit, letter], i) => {
    const three = mode >> (6 - 3 * i);
    const runs = (three & 1) !== 0;
    const last = (mode & bit) !== 0 ? (runs ? letter : letter.toUpperCase()) : runs ? "x" : "-";
    return `${three & 4 ? "r" : "-"}${three & 2 ? "w" : "-"}${last}`;
  }).join("");
}
