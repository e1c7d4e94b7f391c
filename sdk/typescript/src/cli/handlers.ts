/** Which module does what. Each is loaded when its command is given, so that the start is quick. */

import type { Given } from "./given.js";

/** Its exit code; 0 when it says none. */
export type Handler = (given: Given) => Promise<number | undefined> | Promise<void>;

const HANDLERS: Readonly<Record<string, () => Promise<Handler>>> = {
  signup: async () => (await import("./signup.js")).signup,
  login: async () => (await import("./login.js")).login,
  logout: async () => (await import("./login.js")).logout,
  whoami: async () => (await import("./whoami.js")).whoami,
  usage: async () => (await import("./usage.js")).usage,
  repl: async () => (await import("./repl.js")).repl,
  "machine new": async () => (await import("./machine/new.js")).create,
  "machine list": async () => (await import("./machine/list.js")).list,
  "machine show": async () => (await import("./machine/show.js")).show,
  "machine exec": async () => (await import("./machine/exec.js")).exec,
  "machine repl": async () => (await import("./repl.js")).repl,
  "machine logs": async () => (await import("./machine/logs.js")).logs,
  "machine interrupt": async () => (await import("./machine/interrupt.js")).interrupt,
  "machine fork": async () => (await import("./machine/fork.js")).fork,
  "machine snapshot": async () => (await import("./machine/snapshot.js")).snapshot,
  "machine rollback": async () => (await import("./machine/back.js")).rollback,
  "machine reset": async () => (await import("./machine/back.js")).reset,
  "machine hibernate": async () => (await import("./machine/sleep.js")).hibernate,
  "machine wake": async () => (await import("./machine/sleep.js")).wake,
  "machine tag": async () => (await import("./machine/tag.js")).tag,
  "machine delete": async () => (await import("./machine/delete.js")).remove,
  "machine files list": async () => (await import("./machine/files/list.js")).list,
  "machine files get": async () => (await import("./machine/files/get.js")).get,
  "machine files put": async () => (await import("./machine/files/put.js")).put,
  "machine files delete": async () => (await import("./machine/files/delete.js")).remove,
  "token new": async () => (await import("./token.js")).create,
  "token list": async () => (await import("./token.js")).list,
  "token link": async () => (await import("./token.js")).link,
  "token revoke": async () => (await import("./token.js")).revoke,
  "account list": async () => (await import("./account.js")).list,
  "account new": async () => (await import("./account.js")).create,
  "account delete": async () => (await import("./account.js")).remove,
  "account quota": async () => (await import("./account.js")).quota,
  "account invite": async () => (await import("./account.js")).invite,
  "egress show": async () => (await import("./egress/policy.js")).show,
  "egress allow": async () => (await import("./egress/policy.js")).allow,
  "egress deny": async () => (await import("./egress/policy.js")).deny,
  "egress set": async () => (await import("./egress/policy.js")).set,
  "egress default": async () => (await import("./egress/policy.js")).setDefault,
  "egress log": async () => (await import("./egress/log.js")).log,
  "secret set": async () => (await import("./secret.js")).set,
  "secret list": async () => (await import("./secret.js")).list,
  "secret delete": async () => (await import("./secret.js")).remove,
  audit: async () => (await import("./audit/show.js")).show,
  "audit verify": async () => (await import("./audit/verify.js")).verify,
  "audit export": async () => (await import("./audit/export.js")).write,
  "webhook add": async () => (await import("./webhook.js")).add,
  "webhook list": async () => (await import("./webhook.js")).list,
  "webhook test": async () => (await import("./webhook.js")).test,
  "webhook delete": async () => (await import("./webhook.js")).remove,
  "webhook dead list": async () => (await import("./webhook.js")).listDead,
  "webhook dead retry": async () => (await import("./webhook.js")).retryDead,
};

export async function handlerOf(path: readonly string[]): Promise<Handler> {
  const name = path.join(" ");
  const load = HANDLERS[name];
  if (load === undefined) throw new Error(`nothing does \`everforge ${name}\``);
  return load();
}
