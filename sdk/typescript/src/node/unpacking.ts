/** An archive as a folder of this computer. It comes from a machine, whose code may be anyone's: nothing may land or lead outside the folder, and no device. */

import { constants, copyFile, lstat, mkdir, open, readlink, realpath, symlink, unlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

import type { LocalFile } from "../disk.js";
import { ArchiveRefused } from "../generated/errors.js";
import { quoted } from "../quoting.js";
import { say } from "../sentences.js";
import { ArchiveReader } from "./archive.js";
import { makeFolder } from "./folders.js";
import { BadArchive, type Header } from "./tar.js";

const LINKS_MAX = 40; // one behind another, as systems have it
const FOREIGN = process.platform === "win32" ? /[\0\\:]/ : /\0/; // what no part of a name may have

/** How many files. */
export async function unpack(archive: LocalFile, target: string): Promise<number> {
  makeFolder(target);
  const unpacking = new Unpacking(await realpath(target));
  try {
    const files = await unpacking.all(new ArchiveReader(archive));
    await unpacking.removeStrays();
    return files;
  } catch (error) {
    await unpacking.removeStrays(); // what leads out is worse than whatever else went wrong
    throw error instanceof BadArchive ? new ArchiveRefused(say("archive_unreadable", { why: error.message })) : error;
  }
}

class Unpacking {
  readonly #links: string[] = [];

  constructor(private readonly root: string) {}

  async all(archive: ArchiveReader): Promise<number> {
    let files = 0;
    for (let entry = await archive.next(); entry !== null; entry = await archive.next()) {
      await this.#one(entry, archive);
      if (entry.kind !== "folder") files++;
    }
    return files;
  }

  async #one(entry: Header, archive: ArchiveReader): Promise<void> {
    const place = await this.#place(entry.name, entry.kind === "folder");
    if (entry.kind === "folder") {
      await mkdir(place, { recursive: true });
      return;
    }
    await mkdir(dirname(place), { recursive: true });
    const there = await statusOf(place);
    if (there?.isSymbolicLink() === true || there?.isFile() === true) await unlink(place);
    switch (entry.kind) {
      case "file":
        await write(entry, archive, place);
        return;
      case "hard link":
        await this.#copy(entry, place);
        return;
      case "link":
        this.#checkLink(entry, place);
        await symlink(entry.to, place);
        this.#links.push(place);
        return;
      default:
        throw new ArchiveRefused(say("archive_kind", { name: quoted(entry.name) }));
    }
  }

  /** Its content is that of a file which came before. */
  async #copy(entry: Header, place: string): Promise<void> {
    const original = await this.#place(entry.to, false);
    if ((await statusOf(original))?.isFile() !== true) throw this.#outside(entry.name);
    await copyFile(original, place, constants.COPYFILE_EXCL);
  }

  /** In its folder as that really is, now: a link made by an earlier entry may lead to another. */
  async #place(name: string, isFolder: boolean): Promise<string> {
    if (name.startsWith("/") || FOREIGN.test(name)) throw this.#outside(name);
    const parts = name.split("/").filter((part) => part !== "" && part !== ".");
    if (parts.includes("..") || (parts.length === 0 && !isFolder)) throw this.#outside(name);
    const last = parts.pop();
    if (last === undefined) return this.root;
    const folder = await realAsFarAsItGoes(join(this.root, ...parts));
    if (folder === null || !this.#isInside(folder)) throw this.#outside(name);
    return join(folder, last);
  }

  #isInside(path: string): boolean {
    return path === this.root || path.startsWith(this.root.endsWith(sep) ? this.root : this.root + sep);
  }

  /** It goes up first, no further than to the root, and then only down.
   *
   * So it stays inside whatever is made later: its own folder is real and stays one, and what it passes on its way down is a folder, or a link of
   * which the same is true. Behind a name, `..` would mean another folder once that name is a link. */
  #checkLink({ name, to }: Header, place: string): void {
    const parts = to.split("/").filter((part) => part !== "" && part !== ".");
    const down = parts.findIndex((part) => part !== "..");
    const ups = down < 0 ? parts.length : down;
    const depth = relative(this.root, dirname(place)).split(sep).filter(Boolean).length;
    if (parts.slice(ups).includes("..")) throw new ArchiveRefused(say("archive_dots", { name: quoted(name), to: quoted(to), folder: this.root }));
    if (to === "" || FOREIGN.test(to) || to.startsWith("/") || isAbsolute(to) || ups > depth) throw this.#outside(name);
  }

  /** None leads out by itself; but one may pass through a link that was in the folder before. Throws ArchiveRefused, which names the first. */
  async removeStrays(): Promise<void> {
    let first: string | null = null;
    for (const link of this.#links.splice(0)) {
      if ((await statusOf(link))?.isSymbolicLink() !== true) continue;
      const real = await realAsFarAsItGoes(link);
      if (real !== null && this.#isInside(real)) continue;
      await unlink(link);
      first ??= relative(this.root, link);
    }
    if (first !== null) throw this.#outside(first);
  }

  #outside(name: string): ArchiveRefused {
    return new ArchiveRefused(say("archive_outside", { name: quoted(name), folder: this.root }));
  }
}

async function write(entry: Header, archive: ArchiveReader, place: string): Promise<void> {
  const file = await open(place, "wx");
  try {
    for await (const chunk of archive.content()) await file.writeFile(chunk);
    await file.chmod((entry.mode & 0o755) | 0o600);
    await file.utimes(entry.mtime, entry.mtime);
  } finally {
    await file.close();
  }
}

async function statusOf(path: string): Promise<Awaited<ReturnType<typeof lstat>> | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Where a path leads, though its end may not be there yet. null where links go round in a circle. */
async function realAsFarAsItGoes(path: string, links = 0): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ELOOP" || links > LINKS_MAX) return null;
    if (code !== "ENOENT") throw error;
  }
  const folder = dirname(path) === path ? path : await realAsFarAsItGoes(dirname(path), links);
  if (folder === null) return null;
  const isLink = (await statusOf(join(folder, basename(path))))?.isSymbolicLink() === true;
  return isLink ? await realAsFarAsItGoes(resolve(folder, await readlink(join(folder, basename(path)))), links + 1) : join(folder, basename(path));
}
