/** What the operating system says of a file, in the words of the C library: Node has its own for a few. */

import { getSystemErrorMap } from "node:util";

const WORDS: Readonly<Record<string, string>> = {
  EISDIR: "is a directory",
  EEXIST: "file exists",
  ELOOP: "too many levels of symbolic links",
  ENAMETOOLONG: "file name too long",
  ENOTEMPTY: "directory not empty",
  EINVAL: "invalid argument",
  EIO: "input/output error",
  EMFILE: "too many open files",
  ENFILE: "too many open files in system",
  EDQUOT: "disk quota exceeded",
  ENXIO: "no such device or address",
  EBUSY: "device or resource busy",
  ETXTBSY: "text file busy",
  EXDEV: "invalid cross-device link",
};

export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).code === "string" && "syscall" in error;
}

export function reason(error: NodeJS.ErrnoException): string {
  const known = WORDS[error.code ?? ""];
  if (known !== undefined) return known;
  const found = error.errno === undefined ? undefined : getSystemErrorMap().get(error.errno);
  return (found?.[1] ?? error.message).toLowerCase();
}

/** By the number that a process ended with. */
export function errorNumbered(number: number): NodeJS.ErrnoException {
  const [code, message] = getSystemErrorMap().get(-number) ?? ["EIO", "input/output error"];
  return Object.assign(new Error(message), { code, errno: -number, syscall: "write" });
}
