/** `everforge egress show`, `allow`, `deny`, `set` and `default`. */

import { CHOICES, type Egress, type EgressPolicy } from "../../generated/api.js";
import { connected, machineNamed } from "../connection.js";
import type { Given } from "../given.js";
import { among, oneOf } from "../options.js";
import { print, say } from "../output.js";
import { printJson } from "../tables.js";

function told(policy: EgressPolicy, json: boolean): void {
  if (json) {
    printJson(policy);
    return;
  }
  print(policy.egress);
  for (const rule of policy.egress_allow) print(`  ${rule}`);
}

export async function show(given: Given): Promise<void> {
  const name = given.text("name");
  const found = name === undefined ? await connected((server) => server.egress.show()) : await machineNamed(name, (machine) => machine.egress.show());
  told(found, given.json);
}

export async function allow(given: Given): Promise<void> {
  told(await machineNamed(given.needed("name"), (machine) => machine.egress.allow(...given.texts("hosts"))), given.json);
}

export async function deny(given: Given): Promise<void> {
  told(await machineNamed(given.needed("name"), (machine) => machine.egress.deny(...given.texts("hosts"))), given.json);
}

export async function set(given: Given): Promise<void> {
  const [policy] = among(CHOICES.Egress, "POLICY", [given.needed("policy")]);
  const [before, now] = await machineNamed(given.needed("name"), async (machine) => {
    const allowed = (await machine.egress.show()).egress_allow;
    return [allowed, await machine.egress.set(policy as Egress)] as const;
  });
  told(now, given.json);
  const dropped = before.filter((rule) => !now.egress_allow.includes(rule));
  if (dropped.length > 0 && !given.json) say(`everforge: ${String(dropped.length)} rule${dropped.length > 1 ? "s" : ""} dropped: ${dropped.join(" ")}`);
}

export async function setDefault(given: Given): Promise<void> {
  const policy = oneOf(CHOICES.Egress, "POLICY", given.text("policy"));
  const hosts = given.texts("allow");
  told(await connected((server) => server.egress.set(policy, { allow: hosts.length > 0 ? hosts : undefined })), given.json);
}
