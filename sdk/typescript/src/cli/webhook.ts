/** `everforge webhook ...`: be told of events over HTTP. */

import { askSecret } from "./asking.js";
import { connected } from "./connection.js";
import type { Given } from "./given.js";
import { print, say } from "./output.js";
import { moment, printJson, printRows } from "./tables.js";
import { BadValue } from "./wrongusage.js";

const HEADING = ["ID", "URL", "EVENTS", "CREATED"];
const DEAD_HEADING = ["ID", "WEBHOOK", "EVENT", "CREATED", "TRIES", "ERROR"];

export async function add(given: Given): Promise<void> {
  const option = given.text("secret");
  const secret = option === undefined ? undefined : await secretOf(option);
  const events = given.texts("event").flatMap((words) => words.split(","));
  const made = await connected((server) => server.webhooks.add(given.needed("url"), { events: events.length > 0 ? events : undefined, secret }));
  if (given.json) printJson(made);
  else print(`${made.id}\t${made.secret}`);
}

async function secretOf(option: string): Promise<string> {
  if (option !== "-") throw new BadValue("others see a command line: give --secret - and the secret on standard input", "--secret"); // and it is not repeated
  return askSecret("Secret", "--secret");
}

export async function list(given: Given): Promise<void> {
  const found = await connected((server) => server.webhooks.list());
  if (given.json) printJson(found);
  else printRows(HEADING, found.map((w) => [w.id, w.url, w.events.join(" "), moment(w.created_at)]));
}

export async function test(given: Given): Promise<void> {
  await connected((server) => server.webhooks.test(given.needed("id")));
  if (given.json) printJson({ delivered: true });
  else print("delivered");
}

export async function remove(given: Given): Promise<void> {
  const id = given.needed("id");
  await connected((server) => server.webhooks.delete(id));
  if (given.json) printJson({ deleted: id });
  else print(`deleted ${id}`);
}

export async function listDead(given: Given): Promise<void> {
  const found = await connected((server) => server.webhooks.givenUp());
  if (given.json) {
    printJson(found.deliveries);
    return;
  }
  printRows(DEAD_HEADING, found.deliveries.map((d) => [d.id, d.webhook, d.event, moment(d.created_at), d.attempts, d.error]));
  if (found.let_go) say(`everforge: there was no room for ${String(found.let_go)} older ones since the server's start`);
}

export async function retryDead(given: Given): Promise<void> {
  const count = await connected((server) => server.webhooks.retry(given.text("id")));
  if (given.json) printJson({ deliveries: count });
  else print(`${String(count)} tried anew`);
}
