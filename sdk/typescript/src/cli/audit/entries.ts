/** Entries of the audit log, with their fields in the order in which the log has them, and numbers as they were written: a hash covers them to the letter. */

import { EXACTLY, type AuditOptions } from "../../audit.js";
import type { AuditEntry } from "../../generated/api.js";
import type { Everforge } from "../../node.js";

const FIELDS = ["time", "action", "outcome", "account", "account_name", "token", "machine", "address", "request", "detail", "number", "previous", "hash"] as const;

export function inOrder(entry: AuditEntry): Record<string, unknown> {
  return Object.fromEntries(FIELDS.map((name) => [name, entry[name] ?? null]));
}

/** Oldest first; pages by itself. */
export async function* exactEntries(server: Everforge, options: AuditOptions = {}): AsyncGenerator<AuditEntry, void, undefined> {
  for (let after: number | null = options.after ?? 0; after !== null;) {
    const page = await server.audit[EXACTLY]({ ...options, after });
    yield* page.entries;
    after = page.next;
  }
}
