/** `everforge egress log`. */

import type { EgressAttempt } from "../../generated/api.js";
import { machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { moment, printJson, printRows, size } from "../tables.js";

const LIMIT = 50;
const HEADING = ["TIME", "VERDICT", "WHAT", "SENT", "RECEIVED", "WHY"];

export async function log(given: Given): Promise<void> {
  const limit = given.number("limit") ?? LIMIT;
  const found = await machineNamed(given.needed("name"), async (machine) => {
    const some: EgressAttempt[] = [];
    for await (const attempt of machine.egress.log()) {
      if (given.flag("refused") && attempt.verdict !== "refused") continue;
      some.push(attempt);
      if (some.length >= limit) break;
    }
    return some;
  });
  if (given.json) printJson(found);
  else printRows(HEADING, found.map(row));
}

function row(a: EgressAttempt): string[] {
  const why = a.why || `${a.allowed_by}${a.secrets.length > 0 ? `, with ${a.secrets.join(" ")}` : ""}`;
  return [moment(a.time), a.verdict, `${a.method} ${a.host}:${String(a.port)}${a.path}`, size(a.sent_bytes), size(a.received_bytes), why];
}
