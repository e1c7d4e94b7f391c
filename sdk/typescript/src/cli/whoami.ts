/** `everforge whoami`. */

import { connected } from "./connection.js";
import type { Given } from "./given.js";
import { printFields, printJson } from "./tables.js";

export async function whoami(given: Given): Promise<void> {
  const { findAccess } = await import("../node.js");
  const access = findAccess();
  const { account, owner, token } = await connected((server) => server.account(), { token: access.token, base_url: access.base_url });
  if (given.json) {
    printJson({ account, owner, server: access.base_url, token: token ?? null, token_from: access.source });
    return;
  }
  const fields: [string, string][] = [["account", account + (owner ? " (owner)" : "")], ["server", access.base_url], ["token from", access.source]];
  printFields(token ? [...fields, ["may", token.scopes.join(" ")]] : fields);
}
