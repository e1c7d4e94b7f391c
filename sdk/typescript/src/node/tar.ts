/** The format of archives: one header, and how names that do not fit into it are spelled. No files here. */

export const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
const OCTAL_MAX = 0o77777777777; // of eleven digits
const MAGIC = "ustar\x0000";

export type Kind = "file" | "folder" | "link" | "hard link" | "extended" | "global" | "long name" | "long link" | "other";
const KINDS: Readonly<Record<string, Kind>> = {
  "\0": "file", "0": "file", "7": "file", "1": "hard link", "2": "link", "5": "folder", x: "extended", g: "global", L: "long name", K: "long link",
};
const LETTERS: Partial<Record<Kind, string>> = { file: "0", link: "2", folder: "5", extended: "x" };

export interface Header {
  name: string;
  kind: Kind;
  /** Of what follows, before it is filled up to a whole block. */
  size: number;
  mode: number;
  /** Seconds since 1970. */
  mtime: number;
  /** Where a link leads. */
  to: string;
}

/** What it says is nonsense. */
export class BadArchive extends Error {}

export function padding(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

// --- writing ---------------------------------------------------------------------------------------------------------------------------------

/** One block, or several where something does not fit into one. */
export function headerBytes(header: Header): Uint8Array {
  const more = records(header);
  const own = block(header);
  if (more.length === 0) return own;
  const first = block({ name: "./PaxHeaders/entry", kind: "extended", size: more.length, mode: 0o644, mtime: 0, to: "" });
  return Buffer.concat([first, more, Buffer.alloc(padding(more.length)), own]);
}

function block({ name, kind, size, mode, mtime, to }: Header): Buffer {
  const made = Buffer.alloc(BLOCK_BYTES);
  made.write(name, 0, NAME_BYTES_MAX, "utf8"); // cut where it is too long: the records have the whole
  const numbers: readonly [at: number, digits: number, value: number][] = [[100, 7, mode], [108, 7, 0], [116, 7, 0], [124, 11, size], [136, 11, mtime]];
  for (const [at, digits, value] of numbers) made.write(octal(value, digits), at, "latin1");
  made.write(" ".repeat(8), 148, "latin1"); // the sum counts itself as spaces
  made.write(LETTERS[kind] ?? "0", 156, "latin1");
  made.write(to, 157, NAME_BYTES_MAX, "utf8");
  made.write(MAGIC, 257, "latin1");
  made.write(`${octal(sum(made), 6)}\0 `, 148, "latin1");
  return made;
}

function octal(value: number, digits: number): string {
  return (value < 0 || value > OCTAL_MAX ? 0 : Math.floor(value)).toString(8).padStart(digits, "0");
}

function records({ name, size, to }: Header): Buffer {
  const found: Buffer[] = [];
  if (!fits(name)) found.push(record("path", name));
  if (!fits(to)) found.push(record("linkpath", to));
  if (size > OCTAL_MAX) found.push(record("size", String(size)));
  return Buffer.concat(found);
}

function fits(text: string): boolean {
  return text.length <= NAME_BYTES_MAX && /^[ -~]*$/.test(text);
}

/** It begins with its own length. */
function record(name: string, value: string): Buffer {
  const rest = Buffer.from(` ${name}=${value}\n`);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

// --- reading ---------------------------------------------------------------------------------------------------------------------------------

/** null for a block of zeros, which ends an archive. Throws BadArchive. */
export function headerOf(bytes: Uint8Array): Header | null {
  const found = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (found.every((one) => one === 0)) return null;
  if (number(found, 148, 8) !== sum(found)) throw new BadArchive("a header has another sum than it says");
  const [name, prefix] = [text(found, 0, NAME_BYTES_MAX), found.toString("latin1", 257, 263) === "ustar\0" ? text(found, 345, 155) : ""];
  const letter = String.fromCharCode(found[156] ?? 0);
  const kind: Kind = (Object.hasOwn(KINDS, letter) ? KINDS[letter] : undefined) ?? "other";
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    kind: kind === "file" && name.endsWith("/") ? "folder" : kind, // of archives older than the letter for it
    size: number(found, 124, 12),
    mode: number(found, 100, 8),
    mtime: number(found, 136, 12),
    to: text(found, 157, NAME_BYTES_MAX),
  };
}

function sum(bytes: Buffer): number {
  return bytes.reduce((sofar, one, at) => sofar + (at >= 148 && at < 156 ? 0x20 : one), 0);
}

function text(bytes: Buffer, at: number, most: number): string {
  const field = bytes.subarray(at, at + most);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? most : end);
}

/** In octal digits; or in bytes, where those are too few. */
function number(bytes: Buffer, at: number, length: number): number {
  const field = bytes.subarray(at, at + length);
  if (((field[0] ?? 0) & 0x80) !== 0) return large(field);
  const digits = field.toString("latin1").replace(/[\0 ]+$/, "").trimStart();
  if (!/^[0-7]*$/.test(digits)) throw new BadArchive("a header has something else where a number should be");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function large(field: Buffer): number {
  const found = field.reduce((sofar, one, i) => sofar * 256n + BigInt(i === 0 ? one & 0x3f : one), 0n);
  if (((field[0] ?? 0) & 0x40) !== 0 || found > BigInt(Number.MAX_SAFE_INTEGER)) throw new BadArchive("a header has a number that is none");
  return Number(found);
}

/** What an extended header says of the entry behind it. Throws BadArchive. */
export function extended(bytes: Uint8Array): Partial<Pick<Header, "name" | "to" | "size" | "mtime">> {
  const found = new Map<string, string>();
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < whole.length; ) {
    const digits = /^(\d{1,9}) /.exec(whole.toString("latin1", at, at + 11))?.[1] ?? "";
    const end = at + Number(digits);
    const [begin, equals] = [at + digits.length + 1, whole.indexOf("=", at)];
    if (digits === "" || end > whole.length || equals < begin || equals >= end || whole[end - 1] !== 0x0a) throw new BadArchive("an extended header is broken");
    found.set(whole.toString("utf8", begin, equals), whole.toString("utf8", equals + 1, end - 1));
    at = end;
  }
  const [name, to, size, mtime] = ["path", "linkpath", "size", "mtime"].map((field) => found.get(field));
  return {
    ...(name === undefined ? {} : { name }),
    ...(to === undefined ? {} : { to }),
    ...(size === undefined ? {} : { size: counted(size) }),
    ...(mtime === undefined || !Number.isFinite(Number(mtime)) ? {} : { mtime: Number(mtime) }),
  };
}

function counted(digits: string): number {
  const found = /^\d{1,16}$/.test(digits) ? Number(digits) : NaN;
  if (!Number.isSafeInteger(found)) throw new BadArchive("an extended header has a size that is none");
  return found;
}
