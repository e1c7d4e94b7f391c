/** Where a client finds its server and its token.
 *
 * A token is a secret of one server, so that token and address always come from one and the same source; the first source that has both wins.
 * At once and not with promises: a few short files, and whoever makes a client wants to know. */

import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, fsyncSync, lstatSync, openSync, readFileSync, readSync, readlinkSync, renameSync, rmSync, unlinkSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

import { Access, checkToken, checkUrl } from "../access.js";
import { isObject } from "../decoding.js";
import { ConfigurationBad, ServerUnknown } from "../generated/errors.js";
import { say } from "../sentences.js";
import { configHome, dataFolder, makeFolder } from "./folders.js";
import { saidOf } from "./systemerror.js";

const FILE_BYTES_MAX = 64 * 1024; // a configuration is a few lines
const OPEN = constants.O_RDONLY | constants.O_NONBLOCK;
const ABSENT: readonly (string | undefined)[] = ["ENOENT", "ENOTDIR", "EACCES", "EPERM"];

/** What was given, else the environment, else the files of `everforge login`, else the server on this computer. */
export function findAccess(token?: string, base_url?: string): Access {
  if (token !== undefined) {
    const url = base_url === undefined ? localUrlOr(say("no_address")) : checkUrl(base_url);
    return new Access(url, checkToken(token), "the arguments");
  }
  const wanted = base_url === undefined ? null : checkUrl(base_url);
  for (const access of sources()) {
    if (wanted === null || access.base_url === wanted) return access;
  }
  if (wanted !== null) throw new ConfigurationBad(say("no_token", { url: wanted }));
  throw new ServerUnknown(say("no_server"));
}

function* sources(): Generator<Access> {
  const { EVERFORGE_TOKEN: token, EVERFORGE_URL: url, FOREVERVM_TOKEN: theirs, FOREVERVM_BASE_URL: theirUrl } = process.env;
  if (token) yield new Access(checkUrl(url || localUrlOr(say("environment_no_address"))), checkToken(token), "EVERFORGE_TOKEN"); // eslint-disable-line @typescript-eslint/prefer-nullish-coalescing -- an empty variable is none
  else if (url) yield tokenFor(checkUrl(url));
  yield* fromFile(configPath());
  if (theirs && theirUrl) yield new Access(checkUrl(theirUrl), checkToken(theirs), "FOREVERVM_TOKEN"); // one alone is meant for another service
  yield* fromFile(join(configHome(), "forevervm", "config.json"));
  yield* local();
}

/** EVERFORGE_URL alone names a server whose token lies in a file. */
function tokenFor(url: string): Access {
  for (const access of [...fromFile(configPath()), ...local()]) {
    if (access.base_url === url) return access;
  }
  throw new ConfigurationBad(say("environment_no_token", { url }));
}

// --- files ---------------------------------------------------------------------------------------------------------------------------

export function configPath(): string {
  return join(configHome(), "everforge", "config.json");
}

/** For the next time. Mode 0600, whole or not at all. */
export function writeConfig(access: Access): string {
  const path = configPath();
  const partial = join(dirname(path), `.config.${randomBytes(6).toString("hex")}`);
  try {
    makeFolder(dirname(path), 0o700);
    const handle = openSync(partial, "wx", 0o600);
    try {
      writeSync(handle, JSON.stringify({ token: access.token, server_url: access.base_url }));
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(partial, path);
  } catch (error) {
    remove(partial);
    throw saidOf(path, error as NodeJS.ErrnoException);
  }
  return path;
}

/** As far as there is one. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // what went wrong first is told
  }
}

/** Was there one? */
export function deleteConfig(): boolean {
  try {
    unlinkSync(configPath());
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function* fromFile(path: string): Generator<Access> {
  const text = readPrivate(path);
  if (text === null) return;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new ConfigurationBad(say("config_not_json", { path }));
  }
  if (!isObject(found)) return;
  const { token, server_url: url } = found;
  if (typeof token === "string" && typeof url === "string" && token !== "" && url !== "") yield new Access(checkUrl(url), checkToken(token), path);
}

/** The server on this computer leaves its address and its owner's token in the data folder. */
function* local(): Generator<Access> {
  const url = localUrl();
  if (url === null) return;
  const path = join(dataFolder(), "owner.token");
  const token = readPrivate(path)?.trim();
  if (token) yield new Access(url, checkToken(token), path, false);
}

/** Of the server on this computer, as far as one said so here. It may have gone since. */
export function localUrl(): string | null {
  try {
    const place = join(dataFolder(), "server.json");
    const text = lstatSync(place).isSymbolicLink() ? readlinkSync(place) : readFileSync(place, "utf8"); // a link on a full disk
    const found: unknown = JSON.parse(text.slice(0, FILE_BYTES_MAX));
    return isObject(found) && typeof found["url"] === "string" ? checkUrl(found["url"]) : null;
  } catch {
    return null; // not there, not ours to read, or half written: then there is none
  }
}

function localUrlOr(otherwise: string): string {
  const url = localUrl();
  if (url === null) throw new ConfigurationBad(otherwise);
  return url;
}

/** null where there is none, or where it is another user's. A secret that others can read, or a thing that is no file, is an error. */
function readPrivate(path: string): string | null {
  let handle: number;
  try {
    handle = openSync(path, OPEN);
  } catch (error) {
    if (ABSENT.includes((error as NodeJS.ErrnoException).code)) return null;
    throw new ConfigurationBad(say("config_unreadable", { path, why: (error as Error).message }));
  }
  try {
    const status = fstatSync(handle);
    if (!status.isFile()) throw new ConfigurationBad(say("config_not_file", { path }));
    if ((status.mode & 0o077) !== 0 && process.platform !== "win32") throw new ConfigurationBad(say("config_public", { path }));
    if (status.size > FILE_BYTES_MAX) throw new ConfigurationBad(say("config_too_long", { path }));
    const bytes = Buffer.alloc(FILE_BYTES_MAX);
    return bytes.toString("utf8", 0, readSync(handle, bytes));
  } finally {
    closeSync(handle);
  }
}
