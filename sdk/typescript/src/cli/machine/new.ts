/** `everforge machine new`. */

import { CHOICES } from "../../generated/api.js";
import { connected, suggesting } from "../connection.js";
import type { Given } from "../given.js";
import { finite, oneOf, pairs } from "../options.js";
import { print } from "../output.js";
import { waiting } from "../progress.js";
import { quotedText } from "../../quoting.js";
import { printJson } from "../tables.js";
import { BadValue } from "../wrongusage.js";

export async function create(given: Given): Promise<void> {
  const egress = oneOf(CHOICES.Egress, "--egress", given.text("egress"));
  const history = oneOf(CHOICES.When, "--history", given.text("history"));
  const durability = oneOf(CHOICES.When, "--durability", given.text("durability"));
  const allow = given.texts("allow");
  const wanted = {
    tags: pairs(given.texts("tag"), "--tag"),
    memory_mb: given.number("memory_mb"),
    cpus: finite("cpus", given.number("cpus")),
    disk_mb: given.number("disk_mb"),
    processes: given.number("processes"),
    image: given.text("image"),
    env: pairs(given.texts("env"), "--env"),
    egress,
    egress_allow: allow.length > 0 ? allow : undefined,
    idle_seconds: finite("idle_seconds", given.number("idle_seconds")),
    expires_at: given.text("expires_at"),
    history,
    durability,
    from_snapshot: snapshotOf(given.text("from_snapshot")),
  };
  const made = await connected((server) =>
    suggesting(wanted.from_snapshot?.machine, () => waiting("making a machine", () => server.create({ name: given.text("name"), ...wanted }))),
  );
  if (given.json) printJson({ machine_name: made.name });
  else print(made.name);
}

function snapshotOf(text: string | undefined): { machine: string; snapshot: string } | undefined {
  if (text === undefined) return undefined;
  const colon = text.indexOf(":");
  if (colon <= 0 || colon === text.length - 1) throw new BadValue(`${quotedText(text)} is not MACHINE:SNAPSHOT`, "--from-snapshot");
  return { machine: text.slice(0, colon), snapshot: text.slice(colon + 1) };
}
