/** The audit log of the account; of the whole server for its owner, who can check that nobody was at it. */

import { Chain, ChainBroken, PRUNED, Part } from "./chain.js";
import { isObject, read } from "./decoding.js";
import type { Door, RequestOptions } from "./door.js";
import { parseExactly } from "./exactjson.js";
import type { AuditEntry, AuditHead, AuditPage } from "./generated/api.js";
import { Forbidden, ProtocolError } from "./generated/errors.js";
import { say } from "./sentences.js";

const ENTRIES_A_PAGE = 500;
/** @internal */
export const EXACTLY = Symbol("exactly");

export interface AuditOptions extends RequestOptions {
  since?: string | undefined;
  machine?: string | undefined;
  /** The whole of it, or its first part. */
  action?: string | undefined;
  /** By name; for the server's owner. */
  account?: string | undefined;
  after?: number | undefined;
}

export interface AuditPageOptions extends AuditOptions {
  limit?: number | undefined;
  /** The newest entries instead. */
  last?: boolean | undefined;
}

export interface VerifyOptions extends RequestOptions {
  /** An end of the log that was kept elsewhere. */
  kept?: AuditHead | null | undefined;
}

export class Audit {
  /** @internal */
  constructor(private readonly door: Door) {}

  /** Oldest first; pages by itself. */
  async *entries(options: AuditOptions = {}): AsyncGenerator<AuditEntry, void, undefined> {
    let after: number | null = options.after ?? 0;
    while (after !== null) {
      const page: AuditPage = await this.page({ ...options, after });
      yield* page.entries;
      after = page.next;
    }
  }

  /** One page. */
  async page(options: AuditPageOptions = {}): Promise<AuditPage> {
    return await this.door.get<AuditPage>("AuditPage", "/audit", queryOf(options), { signal: options.signal });
  }

  /** The last entry's number and hash, for the owner: who keeps it elsewhere can prove later what the log was then. */
  async head(options: RequestOptions = {}): Promise<AuditHead | null> {
    return (await this.page({ limit: 1, last: true, ...options })).head ?? null;
  }

  /** Every entry against the one before, here and not on the server, and against an end of the log that was `kept` elsewhere. For the owner.
   *
   * Throws ChainBroken, which names the first unsound one; Forbidden. */
  async verify(options: VerifyOptions = {}): Promise<Chain> {
    for (;;) {
      const first = await this.first(options);
      try {
        return await this.#verified(options);
      } catch (error) {
        if (!(error instanceof ChainBroken) || !(await this.letGoSince(first, options))) throw error;
      }
    }
  }

  /** The number of the oldest entry, or 0 where there is none. */
  async first(options: RequestOptions = {}): Promise<number> {
    return (await this.page({ limit: 1, signal: options.signal })).entries[0]?.number ?? 0;
  }

  /** Is that entry, which was the first, not there any more, and does the log itself say so? Then what was read since may lack some. */
  async letGoSince(first: number, options: RequestOptions = {}): Promise<boolean> {
    const now = await this.first(options);
    if (now <= first) return false;
    const saysSo = (await this.page({ action: PRUNED, limit: 1, last: true, signal: options.signal })).entries[0];
    const through = saysSo?.detail?.["through"];
    return typeof through === "number" && Number.isSafeInteger(through) && through >= now - 1;
  }

  async #verified(options: VerifyOptions): Promise<Chain> {
    const head = await this.head({ signal: options.signal });
    const chain = new Chain(options.kept ?? null);
    if (head === null) throw new Forbidden(say("whole_log"));
    for await (const entry of this.#exactly(options.signal)) {
      if (entry.number > head.number) break; // what was written since is not looked at
      chain.add(entry);
    }
    chain.end(head);
    return chain;
  }

  /** The entries that this token sees, as far as they tell without those between: none was changed, and none `kept` elsewhere is missing.
   *
   * Throws ChainBroken, which names the first unsound one. */
  async verifyPart(options: VerifyOptions = {}): Promise<Part> {
    const part = new Part(options.kept ?? null);
    for await (const entry of this.#exactly(options.signal)) part.add(entry);
    part.end();
    return part;
  }

  async *#exactly(signal: AbortSignal | undefined): AsyncGenerator<AuditEntry, void, undefined> {
    let after: number | null = 0;
    while (after !== null) {
      const page: AuditPage = await this[EXACTLY]({ after, signal });
      yield* page.entries;
      after = page.next;
    }
  }

  /** One page, with numbers as they were written: a hash covers them to the letter.
   * @internal */
  async [EXACTLY](options: AuditPageOptions): Promise<AuditPage> {
    const text = await this.door.ask("GET", this.door.url("/audit", queryOf(options)), null, { again: true, signal: options.signal });
    return read<AuditPage>("AuditPage", exact(text));
  }
}

function queryOf(options: AuditPageOptions): Record<string, string | number | boolean | undefined> {
  const { since, machine, action, account, after = 0, limit = ENTRIES_A_PAGE, last } = options;
  return { since, machine, action, account, after, limit, last: last === true ? true : undefined };
}

function exact(text: string): unknown {
  let found: unknown;
  try {
    found = parseExactly(text);
  } catch {
    throw new ProtocolError(say("answer_not_json"));
  }
  if (!isObject(found)) throw new ProtocolError(say("answer_not_object"));
  return found;
}
