/** The chain that entries of the audit log make: each one's hash covers the one before. Whoever has the entries can check them, and need not take the
 * server's word. */

import { isObject, type Fields } from "./decoding.js";
import { canonical } from "./exactjson.js";
import type { AuditHead } from "./generated/api.js";
import { sha256 } from "./sha256.js";

export const GENESIS = "0".repeat(64); // what the first entry has for the hash before it
export const PRUNED = "audit.prune"; // the action of an entry that stands for older ones which were let go
const HASHES_MAX = 100_000; // that a check keeps in mind: more than are let go under one anchor

/** `number` is the first entry that is not as it was written, or is not there. */
export class ChainBroken extends Error {
  override readonly name = "ChainBroken";

  constructor(
    readonly number: number,
    readonly reason: string,
  ) {
    super(`entry ${number}: ${reason}`);
  }
}

/** SHA-256 of its canonical JSON, without the hash itself and what is null, so that a later version may have more fields. TypeError where it is none. */
export function hashOf(entry: Fields): string {
  const covered = Object.entries(entry).filter(([name, value]) => name !== "hash" && value !== null && value !== undefined);
  return sha256(canonical(Object.fromEntries(covered)));
}

/** The same of whatever somebody gives for an entry; null where it is so that none was ever sealed. */
function hashFound(entry: Fields): string | null {
  try {
    return hashOf(entry);
  } catch {
    return null;
  }
}

/** Its number and hash, when it is what it says that it is, and follows `before`. */
function sound(entry: Fields, before: AuditHead, number: number): AuditHead {
  if (number === before.number + 1 && entry["previous"] !== before.hash) throw new ChainBroken(number, "it does not follow the entry before it");
  const hash = hashFound(entry);
  if (hash === null || hash !== entry["hash"]) throw new ChainBroken(number, "it was changed: its hash is not that of what it says");
  return { number, hash };
}

function same(one: AuditHead, other: AuditHead): boolean {
  return one.number === other.number && one.hash === other.hash;
}

function numberOf(entry: unknown, place: number, where: string): { entry: Fields; number: number } {
  if (!isObject(entry) || !Number.isSafeInteger(entry["number"]) || typeof entry["previous"] !== "string") {
    throw new ChainBroken(place, `what stands ${where} is no entry`);
  }
  return { entry, number: entry["number"] as number };
}

const GONE = "it was kept, and is not in the log any more: cut off, or let go since";
const ANEW = "it is not the one that was kept: the log was written anew";

/** Takes entries one by one, in the order they come, and finds the first that does not fit. */
export class Chain {
  count = 0;
  head: AuditHead = { number: 0, hash: GENESIS };
  #kept: AuditHead | null;
  #letGo = 0; // the last entry that one which is there says was let go
  #anchored = true;
  readonly #hashes = new Map<number, string>(); // of entries that a prune under way may name

  /** `kept` is the end of the log at some time before, from where nobody who can write the log could change it. */
  constructor(kept: AuditHead | null = null) {
    this.#kept = kept;
    this.#compare(this.head); // kept of a log that had no entry yet
  }

  /** Throws ChainBroken. */
  add(given: unknown): void {
    const { entry, number } = numberOf(given, this.head.number + 1, "in its place");
    if (this.count === 0 && number !== 1) this.#begin(number, entry["previous"] as string);
    if (number !== this.head.number + 1) {
      throw new ChainBroken(this.head.number + 1, `it is missing, or out of its place: ${number} stands there`);
    }
    this.head = sound(entry, this.head, number);
    this.count++;
    this.#compare(this.head);
    if (!this.#anchored) this.#lookForAnchor(entry);
  }

  #compare(head: AuditHead): void {
    if (this.#kept === null || head.number !== this.#kept.number) return;
    if (!same(head, this.#kept)) throw new ChainBroken(head.number, ANEW);
    this.#kept = null;
  }

  #begin(number: number, previous: string): void {
    this.head = { number: number - 1, hash: previous };
    this.#hashes.set(number - 1, previous);
    this.#anchored = false;
  }

  /** A log that does not begin with 1 must say itself why, and name the hash that its first entry follows. */
  #lookForAnchor(entry: Fields): void {
    if (this.#hashes.size < HASHES_MAX) this.#hashes.set(this.head.number, this.head.hash);
    const detail = entry["detail"];
    if (entry["action"] !== PRUNED || !isObject(detail)) return;
    this.#letGo = Number.isSafeInteger(detail["through"]) ? (detail["through"] as number) : 0;
    if (typeof detail["hash"] !== "string" || this.#hashes.get(this.#letGo) !== detail["hash"]) return;
    this.#anchored = true;
    this.#hashes.clear();
  }

  /** There are no more. `head` is where the log says that it ends. Throws ChainBroken. */
  end(head: AuditHead | null = null): void {
    if (!this.#anchored) throw new ChainBroken(this.#letGo + 1, "it is missing, and no entry says that it was let go");
    if (head !== null && head.number > this.head.number) {
      throw new ChainBroken(this.head.number + 1, `it is missing: the log says that it ends with entry ${head.number}`);
    }
    if (head !== null && !same(head, this.head)) {
      throw new ChainBroken(this.head.number + 1, "there may have been one: where the log ends was changed, or taken away");
    }
    if (this.#kept !== null) throw new ChainBroken(this.#kept.number, GONE);
  }
}

/** Of the hashes so far, beginning with GENESIS, and one more: what is left out of an export shows, though numbers have gaps. */
export function digestWith(digest: string, hash: string): string {
  return sha256(digest + hash);
}

/** What one account sees of the log: its own entries, out of a chain whose other links it is not shown.
 *
 * They tell that each is as its hash says, that they stand in their order, and that two which are neighbours follow each other. Whether one is missing
 * they do not tell: where it stood, another's may have. For that it takes the whole log, which the owner of the server has. */
export class Part {
  count = 0;
  head: AuditHead = { number: 0, hash: GENESIS };
  /** Of all hashes. */
  digest = GENESIS;
  #kept: AuditHead | null;

  /** `kept` is the last of them at some time before, from where nobody who can write the log could change it. */
  constructor(kept: AuditHead | null = null) {
    this.#kept = kept !== null && kept.number !== 0 ? kept : null; // with 0 there was none yet
  }

  /** Throws ChainBroken. */
  add(given: unknown): void {
    const { entry, number } = numberOf(given, this.head.number + 1, "where it may have been");
    if (number <= this.head.number) throw new ChainBroken(number, `it is out of its place: it stands after entry ${this.head.number}`);
    const head = sound(entry, this.head, number);
    this.#compare(head);
    this.head = head;
    this.digest = digestWith(this.digest, head.hash);
    this.count++;
  }

  #compare(head: AuditHead): void {
    if (this.#kept === null || head.number < this.#kept.number) return;
    if (head.number > this.#kept.number) throw new ChainBroken(this.#kept.number, GONE);
    if (!same(head, this.#kept)) throw new ChainBroken(head.number, ANEW);
    this.#kept = null;
  }

  /** There are no more. Throws ChainBroken. */
  end(): void {
    if (this.#kept !== null) throw new ChainBroken(this.#kept.number, GONE);
  }
}
