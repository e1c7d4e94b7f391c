/** `everforge token ...`: the tokens of an account. */

import { CHOICES } from "../generated/api.js";
import { connected } from "./connection.js";
import type { Given } from "./given.js";
import { among, pairs } from "./options.js";
import { print } from "./output.js";
import { moment, printJson, printRows } from "./tables.js";

const HEADING = ["ID", "NAME", "SCOPES", "TAGS", "CREATED", "LAST USED", "EXPIRES"];

export async function create(given: Given): Promise<void> {
  const scopes = among(CHOICES.Scope, "--scope", given.texts("scope"));
  const wanted = { scopes: scopes.length > 0 ? scopes : undefined, expires_at: given.text("expires_at"), tags: pairs(given.texts("tag"), "--tag") };
  const made = await connected((server) => server.tokens.create(given.text("name"), wanted));
  if (given.json) printJson(made);
  else print(made.token);
}

export async function list(given: Given): Promise<void> {
  const found = await connected((server) => server.tokens.list());
  if (given.json) printJson(found);
  else printRows(HEADING, found.map((t) => [t.id, t.name, t.scopes.join(" "), t.tags, moment(t.created_at), moment(t.last_used_at), moment(t.expires_at)]));
}

export async function link(given: Given): Promise<void> {
  const made = await connected((server) => server.tokens.link());
  if (given.json) printJson(made);
  else print(made.url);
}

export async function revoke(given: Given): Promise<void> {
  const id = given.needed("id");
  await connected((server) => server.tokens.revoke(id));
  if (given.json) printJson({ revoked: id });
  else print(`revoked ${id}`);
}
