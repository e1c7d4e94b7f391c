/** `everforge machine tag`. */

import { Forbidden } from "../../generated/errors.js";
import type { Everforge } from "../../node.js";
import { connected, suggesting } from "../connection.js";
import type { Given } from "../given.js";
import { pairs } from "../options.js";
import { printJson, printRows } from "../tables.js";

export async function tag(given: Given): Promise<void> {
  const wanted = pairs(given.texts("tags"), "KEY=VALUE") ?? {};
  const remove = given.texts("remove");
  const tags = await connected((server) => suggesting(given.needed("name"), () => change(server, given.needed("name"), wanted, remove)));
  if (given.json) printJson({ tags });
  else printRows(["KEY", "VALUE"], Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function change(server: Everforge, name: string, wanted: Record<string, string>, remove: string[]): Promise<Record<string, string>> {
  const machine = server.machine(name);
  const found = (await machine.info()).tags;
  if (remove.length > 0) await checkIsKeptByNoToken(server, name, remove);
  const changed = Object.fromEntries(Object.entries({ ...found, ...wanted }).filter(([key]) => !remove.includes(key)));
  return same(found, changed) ? found : (await machine.update({ tags: changed })).tags;
}

/** A token for machines with a tag cannot take that one away: the server would put it back, and say nothing. */
async function checkIsKeptByNoToken(server: Everforge, name: string, remove: string[]): Promise<void> {
  const { token } = await server.account();
  const kept = Object.entries(token?.tags ?? {}).find(([key]) => remove.includes(key));
  if (kept !== undefined) {
    throw new Forbidden(`this token is for machines with ${kept.join("=")} alone, and ${name} stays one of them: take a token that is for the whole account`);
  }
}

function same(a: Record<string, string>, b: Record<string, string>): boolean {
  return Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value);
}
