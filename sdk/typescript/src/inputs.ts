/** What a program gives to the SDK, looked at before it goes anywhere: InvalidInput with a sentence, and never a TypeError from the depths. */

import { InvalidInput } from "./generated/errors.js";
import { quoted } from "./quoting.js";
import { say } from "./sentences.js";

const NAME_LENGTH_MAX = 63; // a DNS label: a name may become a host name
const RESERVED_NAMES: readonly string[] = ["new", "list"];

/** How a number, or what stands in its place, is shown in a sentence. */
function spelled(value: unknown): string {
  return typeof value === "number" ? String(value) : quoted(value);
}

/** The first half of a surrogate pair that has no other half; -1 when there is none. Counted in characters. */
export function halfOfAPair(text: string): number {
  const found = /\p{Surrogate}/u.exec(text);
  return found === null ? -1 : Array.from(text.slice(0, found.index)).length;
}

export function checkText(what: string, text: string): string {
  const at = halfOfAPair(text);
  if (at >= 0) throw new InvalidInput(say("half_a_pair", { what, at }));
  return text;
}

export function code(value: unknown): string {
  if (typeof value !== "string") throw new InvalidInput(say("bad_code", { text: quoted(value) }));
  return checkText("code", value);
}

/** How long code may run. */
export function timeoutSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) throw new InvalidInput(say("bad_timeout", { text: spelled(value) }));
  return value;
}

/** How long the caller has. */
export function waitSeconds(value: unknown, name = "wait_seconds"): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw new InvalidInput(say("bad_wait", { name, text: spelled(value) }));
  return value;
}

/** Of an instruction. */
export function instructionNumber(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw new InvalidInput(say("bad_number", { text: spelled(value) }));
  return value;
}

export function environment(value: unknown): Record<string, string> | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value) || !Object.values(value).every((word) => typeof word === "string")) {
    throw new InvalidInput(say("bad_env", { text: quoted(value) }));
  }
  return Object.keys(value).length === 0 ? undefined : { ...(value as Record<string, string>) };
}

export function machineName(value: unknown): string {
  const fits =
    typeof value === "string" && value.length <= NAME_LENGTH_MAX && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(value) && !RESERVED_NAMES.includes(value);
  if (!fits) throw new InvalidInput(say("bad_machine_name", { text: quoted(value) }));
  return value;
}

export function secretName(value: unknown): string {
  if (typeof value !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(value)) throw new InvalidInput(say("bad_secret_name", { text: quoted(value) }));
  return value;
}
