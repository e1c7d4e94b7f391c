/** `everforge account ...`: the accounts of a server, for its owner. */

import { connected } from "./connection.js";
import type { Given } from "./given.js";
import { shortNumber } from "./numbers.js";
import { print } from "./output.js";
import { spelled } from "./spelling.js";
import { moment, printFields, printJson, printRows } from "./tables.js";
import { limits } from "./usage.js";
import { BadValue } from "./wrongusage.js";

const HEADING = ["ACCOUNT", "EMAIL", "OWNER", "CREATED", "QUOTA"];

export async function list(given: Given): Promise<void> {
  const found = await connected((server) => server.accounts.list());
  if (given.json) printJson(found);
  else printRows(HEADING, found.map((one) => [one.account, one.email, one.owner ? "yes" : "no", moment(one.created_at), limited(one.quota)]));
}

/** Those limits that there are. */
function limited(quota: object | null | undefined): string {
  const fields: [string, unknown][] = Object.entries(quota ?? {});
  return fields.filter(([, value]) => value).map(([name, value]) => `${name}=${spelled(value, name)}`).join(" ");
}

export async function create(given: Given): Promise<void> {
  const made = await connected((server) => server.accounts.create(given.needed("name"), { email: given.text("email") }));
  if (given.json) printJson(made);
  else print(made.token);
}

export async function remove(given: Given): Promise<void> {
  const name = given.needed("name");
  await connected((server) => server.accounts.delete(name));
  if (given.json) printJson({ deleted: true });
  else print(`deleted ${name}`);
}

export async function quota(given: Given): Promise<void> {
  const rate = given.number("requests_per_second");
  if (rate !== undefined && !(rate >= -1 && rate < Infinity)) {
    throw new BadValue(`${shortNumber(rate)} is no number of requests: 0 is no limit, -1 what the server's settings say`, "'--requests-per-second'");
  }
  const wanted = {
    machines: given.number("machines"),
    awake: given.number("awake"),
    memory_mb: given.number("memory_mb"),
    disk_mb: given.number("disk_mb"),
    requests_per_second: rate,
    egress_bytes_per_day: given.number("egress_bytes_per_day"),
  };
  const found = await connected((server) => server.accounts.quota(given.needed("name"), wanted));
  if (given.json) printJson(found);
  else printFields(limits(found));
}

export async function invite(given: Given): Promise<void> {
  const made = await connected((server) => server.accounts.invite({ email: given.text("email"), expires_at: given.text("expires_at") }));
  if (given.json) printJson(made);
  else print(made.invitation);
}
