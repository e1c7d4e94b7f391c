/** Steps of an account: `call`. */

import type { AuditHead, Everforge, Machine, api } from "../../src/surface.js";
import { collected, type Given } from "./given.js";

type Act = (client: Everforge, given: Given) => Promise<unknown>;

const CALLS: Readonly<Record<string, Act>> = {
  ".account": (client) => client.account(),
  ".usage": (client) => client.usage(),
  "tokens.list": ({ tokens }) => tokens.list(),
  "tokens.create": ({ tokens }, given) => tokens.create(given.maybeText("name"), given.without<api.NewToken>("name")),
  "tokens.revoke": ({ tokens }, given) => tokens.revoke(given.text("id")),
  "tokens.link": ({ tokens }) => tokens.link(),
  "accounts.list": ({ accounts }) => accounts.list(),
  "accounts.create": ({ accounts }, given) => accounts.create(given.text("name"), { email: given.maybeText("email") }),
  "accounts.delete": ({ accounts }, given) => accounts.delete(given.text("name")),
  "accounts.quota": ({ accounts }, given) => accounts.quota(given.text("name"), given.without<api.QuotaChange>("name")),
  "accounts.invite": ({ accounts }, given) => accounts.invite(given.without<api.NewInvitation>()),
  "secrets.set": ({ secrets }, given) => secrets.set(given.text("name"), given.text("value"), given.without<{ hosts: string[] }>("name", "value")),
  "secrets.list": ({ secrets }) => secrets.list(),
  "secrets.delete": ({ secrets }, given) => secrets.delete(given.text("name")),
  "egress.show": ({ egress }) => egress.show(),
  "egress.set": ({ egress }, given) => egress.set(given.maybeText("policy") as api.Egress | undefined, given.without<object>("policy")),
  "audit.entries": ({ audit }, given) => collected(audit.entries(given.without<object>())),
  "audit.page": ({ audit }, given) => audit.page(given.without<object>()),
  "audit.head": ({ audit }) => audit.head(),
  "audit.first": ({ audit }) => audit.first(),
  "audit.let_go_since": ({ audit }, given) => audit.letGoSince(given.maybeNumber("first") ?? 0),
  "audit.verify": async ({ audit }, given) => ended(await audit.verify(given.without<object>())),
  "audit.verify_part": async ({ audit }, given) => ended(await audit.verifyPart(given.without<object>())),
  "webhooks.list": ({ webhooks }) => webhooks.list(),
  "webhooks.add": ({ webhooks }, given) => webhooks.add(given.text("url"), given.without<object>("url")),
  "webhooks.delete": ({ webhooks }, given) => webhooks.delete(given.text("id")),
  "webhooks.test": ({ webhooks }, given) => webhooks.test(given.text("id")),
  "webhooks.dead": ({ webhooks }) => webhooks.dead(),
  "webhooks.given_up": ({ webhooks }) => webhooks.givenUp(),
  "webhooks.retry": ({ webhooks }, given) => webhooks.retry(given.maybeText("id")),
};

function ended({ count, head }: { count: number; head: AuditHead }): object {
  return { count, head };
}

export async function call(client: Everforge, name: string, given: Given): Promise<unknown> {
  const act = CALLS[name];
  if (act === undefined) throw new Error(`there is no ${name} to call`);
  return await act(client, given);
}

export async function callEgress({ egress }: Machine, method: string, given: Given): Promise<unknown> {
  switch (method) {
    case "show":
      return await egress.show();
    case "set":
      return await egress.set(given.text("policy") as api.Egress);
    case "allow":
      return await egress.allow(...given.texts("rules"));
    case "deny":
      return await egress.deny(...given.texts("rules"));
    case "log":
      return await collected(egress.log());
    default:
      throw new Error(`there is no machine.egress.${method} to call`);
  }
}
