/** Where a reader of a tape remembers what it has printed. The Python command line has the same file.
 *
 * Eight bytes of magic, the number, and which machine it belongs to. The number is twice the cursor, plus one while a line is unfinished: one store, so
 * that the two cannot come apart. */

import { fsyncSync, readSync, writeSync } from "node:fs";

const MAGIC = Buffer.from("EFcursor", "latin1");
const SIZE_BYTES = 512;
const NUMBER_AT = 8;
const IDENTITY_AT = 16;
const NEW = -2n;

export class NotACursorFile extends Error {}

export class CursorFile {
  /** undefined in a new file */
  readonly cursor: number | undefined;
  readonly open: boolean;

  constructor(private readonly handle: number, path: string, identity: string) {
    const found = this.read(identity);
    if (found.length !== SIZE_BYTES || !found.subarray(0, NUMBER_AT).equals(MAGIC)) {
      throw new NotACursorFile(`${path} is something else than a cursor file: take another name`);
    }
    if (!found.subarray(IDENTITY_AT).equals(fresh(identity).subarray(IDENTITY_AT))) {
      const whose = found.subarray(IDENTITY_AT).toString("utf8").replace(/\0+$/, "");
      throw new NotACursorFile(`${path} remembers the place in another machine (${whose}): take another file, or delete it`);
    }
    const number = found.readBigInt64LE(NUMBER_AT);
    this.cursor = number === NEW ? undefined : Number(number >> 1n);
    this.open = (number & 1n) === 1n;
  }

  private read(identity: string): Buffer {
    const found = Buffer.alloc(SIZE_BYTES + 1);
    const count = readSync(this.handle, found, 0, SIZE_BYTES + 1, 0);
    if (count > 0) return found.subarray(0, count);
    const made = fresh(identity);
    writeSync(this.handle, made, 0, SIZE_BYTES, 0);
    fsyncSync(this.handle);
    return made;
  }

  remember(cursor: number, open: boolean): void {
    const number = Buffer.alloc(8);
    number.writeBigInt64LE(BigInt(cursor) * 2n + (open ? 1n : 0n));
    writeSync(this.handle, number, 0, 8, NUMBER_AT);
  }
}

function fresh(identity: string): Buffer {
  const made = Buffer.alloc(SIZE_BYTES);
  MAGIC.copy(made);
  made.writeBigInt64LE(NEW, NUMBER_AT);
  Buffer.from(identity, "utf8").copy(made, IDENTITY_AT);
  return made;
}
