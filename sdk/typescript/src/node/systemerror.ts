/** Errors of the operating system, as Node makes them. */

type Said = Pick<NodeJS.ErrnoException, "code" | "errno" | "syscall">;

/** What went wrong on the way to a file is said of that file. */
export function saidOf(path: string, { code = "EIO", errno, syscall = "open" }: Said): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall} '${path}'`), { code, errno, syscall, path });
}
