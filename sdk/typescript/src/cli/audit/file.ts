/** The audit log in a file, a line of JSON for each entry. Its last line says that this is the end: a file without it was cut.
 *
 * The whole log, which the owner of the server has, ends with {"head": {"number", "hash"}}. What one account sees of it begins with
 * {"part": {"account"}} and ends with {"end": {"entries", "digest"}}: numbers have gaps there, and by the digest it shows when one is missing. */

import { createReadStream } from "node:fs";

import { isObject, type Fields } from "../../decoding.js";
import { parseExactly } from "../../exactjson.js";
import { Chain, ChainBroken, Part, type AuditHead } from "../../node.js";
import { LocalTrouble } from "../failures.js";
import { spelled } from "../spelling.js";

const LINE_BYTES_MAX = 1024 * 1024;
const NEWLINE = 0x0a;
const NONSENSE: Fields = { nonsense: true };
const CUT = "the file ends without saying that this is the end of the log";

/** Throws ChainBroken; LocalTrouble where it is the part of an account, and that will not do. */
export async function checked(file: string, kept: AuditHead | undefined, partWillDo: boolean): Promise<Chain | Part> {
  const lines = entriesOf(file);
  try {
    const first = await following(lines);
    if (!isObject(first?.["part"])) return await checkedWhole(first, lines, kept);
    if (partWillDo) return await checkedPart(lines, kept);
    throw new LocalTrouble(`${file} has the entries of one account and not the whole log: check with --part what can be told from them`);
  } finally {
    await lines.return();
  }
}

type Lines = AsyncGenerator<Fields, void, undefined>;

async function following(lines: Lines): Promise<Fields | undefined> {
  const found = await lines.next();
  return found.done === true ? undefined : found.value;
}

async function checkedWhole(first: Fields | undefined, lines: Lines, kept: AuditHead | undefined): Promise<Chain> {
  const chain = new Chain(kept);
  let line = first;
  for (; line !== undefined && !isObject(line["head"]); line = await following(lines)) chain.add(line);
  const head = line?.["head"];
  if (!isObject(head)) throw new ChainBroken(chain.head.number + 1, CUT);
  await nothingFollows(lines, chain.head);
  const { number, hash } = head;
  chain.end({ number: typeof number === "number" ? number : 0, hash: spelled(hash) });
  return chain;
}

async function checkedPart(lines: Lines, kept: AuditHead | undefined): Promise<Part> {
  const part = new Part(kept);
  let line = await following(lines);
  for (; line !== undefined && !isObject(line["end"]); line = await following(lines)) part.add(line);
  const end = line?.["end"];
  if (!isObject(end)) throw new ChainBroken(part.head.number + 1, CUT);
  const { entries, digest, ...more } = end;
  if (entries !== part.count || digest !== part.digest || Object.keys(more).length > 0) {
    throw new ChainBroken(part.head.number + 1, `there may have been one: these are not the ${spelled(entries)} entries that were exported`);
  }
  await nothingFollows(lines, part.head);
  part.end();
  return part;
}

async function nothingFollows(lines: Lines, head: AuditHead): Promise<void> {
  if ((await following(lines)) !== undefined) throw new ChainBroken(head.number + 1, "something follows the end of the log");
}

async function* entriesOf(file: string): Lines {
  for await (const line of linesOf(file)) yield entryOf(line);
}

function entryOf(line: Buffer): Fields {
  try {
    const found = parseExactly(new TextDecoder("utf-8", { fatal: true }).decode(line));
    return isObject(found) && Object.keys(found).length > 0 ? found : NONSENSE;
  } catch {
    return NONSENSE;
  }
}

/** A line that is too long for one comes in pieces, none of which is an entry. */
async function* linesOf(file: string): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const part of createReadStream(file)) {
    rest = Buffer.concat([rest, part as Buffer]);
    for (let end = endOf(rest); end > 0; end = endOf(rest)) {
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) yield rest;
}

/** Of the line that it begins with; 0 while there is more of it to come. */
function endOf(bytes: Buffer): number {
  const newline = bytes.subarray(0, LINE_BYTES_MAX).indexOf(NEWLINE);
  if (newline >= 0) return newline + 1;
  return bytes.length >= LINE_BYTES_MAX ? LINE_BYTES_MAX : 0;
}
