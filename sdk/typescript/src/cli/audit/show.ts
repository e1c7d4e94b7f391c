/** `everforge audit`. */

import { EXACTLY } from "../../audit.js";
import type { AuditEntry } from "../../generated/api.js";
import type { Everforge } from "../../node.js";
import { connected } from "../connection.js";
import type { Given } from "../given.js";
import { say } from "../output.js";
import { moment, printJson, printRows } from "../tables.js";
import { exactEntries, inOrder } from "./entries.js";

const LAST = 50;
const HEADING = ["NUMBER", "TIME", "ACCOUNT", "TOKEN", "ADDRESS", "ACTION", "MACHINE", "OUTCOME", "DETAIL"];

export async function show(given: Given): Promise<void> {
  const found = await connected((server) => wanted(server, given));
  if (given.json) {
    printJson(found.map(inOrder));
    return;
  }
  if (found.length === 0) say("everforge: no entries match");
  printRows(HEADING, found.map((e) => [e.number, moment(e.time), e.account_name, e.token, e.address, e.action, e.machine, e.outcome, e.detail]));
}

/** All since a time, or so many of the newest. */
async function wanted(server: Everforge, given: Given): Promise<AuditEntry[]> {
  const since = given.text("since");
  const chosen = { since, machine: given.text("machine"), action: given.text("action"), account: given.text("account") };
  if (!since) return (await server.audit[EXACTLY]({ ...chosen, limit: given.number("last") ?? LAST, last: true })).entries;
  const found: AuditEntry[] = [];
  for await (const entry of exactEntries(server, chosen)) found.push(entry);
  return found;
}
