/** What a server's refusal becomes here: an error of the one tree, by its code. */

import { isObject, type Fields } from "./decoding.js";
import { EverforgeError } from "./error.js";
import type { Retry } from "./generated/api.js";
import { KNOWN, Uncertain, Unauthenticated, Unreachable, VersionMismatch } from "./generated/errors.js";
import { CAUSES } from "./generated/sentences.js";
import { VERSION } from "./generated/version.js";
import { say } from "./sentences.js";

export const BODY_BYTES_MAX = 1024 * 1024; // of an error; ours are a few hundred
export const VERSION_HEADER = "x-everforge-version"; // every answer of a server has it
const RETRY_AFTER_SECONDS_MAX = 3600;
const RETRIES: readonly unknown[] = ["never", "later", "now"];

export type Cause = keyof typeof CAUSES;
export interface Headers {
  get(name: string): string | null;
}

/** No connection could be made: whatever was to be asked has not been heard. */
export class Unreached extends Error {
  readonly why: string;

  constructor(message: string, cause: Cause = "failed") {
    super(message);
    this.why = CAUSES[cause];
  }
}

/** The connection ended in the middle: what was asked may have been done, or not. */
export class Cut extends Error {}

/** The server closed a WebSocket, and said why. */
export class Closed extends Cut {
  constructor(
    readonly status: number,
    reason: string,
  ) {
    super(reason === "" ? `closed with ${status}` : reason);
  }
}

/** A WebSocket was refused in the handshake: a whole HTTP answer. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly body: string,
  ) {
    super(`HTTP ${status}`);
  }
}

/** Of an answer that is no success. */
export function errorOf(status: number, headers: Headers, body: string, base_url: string): EverforgeError {
  const fields = fieldsOf(body);
  const code = fields["code"];
  if (typeof code !== "string" || code === "") return foreignStatus(status, base_url);
  const server = headers.get(VERSION_HEADER);
  if ((code === "RouteNotFound" || code === "MethodNotAllowed") && server !== VERSION) {
    return new VersionMismatch(say("other_version", { url: base_url, server: server ?? "of another version", client: VERSION }));
  }
  const error = errorFrom(fields, status);
  if (status === 401) error.message = say("token_unknown", { url: base_url });
  error.requestId = textOf(fields["id"]) ?? headers.get("x-request-id");
  error.retryAfterSeconds = secondsOf(headers.get("retry-after"));
  return error;
}

/** Somebody else answers there. */
export function foreign(base_url: string): VersionMismatch {
  return new VersionMismatch(say("foreign", { url: base_url }));
}

/** Of an error's body. A code that this client is too young for stays as it is, with its message. */
export function errorFrom(fields: Fields, status = 500): EverforgeError {
  const code = textOf(fields["code"]) ?? "Internal";
  const given = textOf(fields["message"]);
  const message = given === null || given === "" ? say("answered", { code }) : given;
  const known = Object.hasOwn(KNOWN, code) ? KNOWN[code] : undefined;
  const error = known === undefined ? EverforgeError.unknown(message, code, status, retryOf(fields["retry"])) : new known(message);
  if (isObject(fields["details"])) error.details = fields["details"];
  return error;
}

/** Reasons of a closed WebSocket after which there is no use in coming back. */
export function revoked(base_url: string): Unauthenticated {
  return new Unauthenticated(say("token_revoked", { url: base_url }));
}

function foreignStatus(status: number, base_url: string): EverforgeError {
  if (status === 503) return new Unreachable(say("gateway_away", { url: base_url, status }));
  if (status === 502 || status === 504) return new Uncertain(say("gateway_cut", { url: base_url, status }));
  return new VersionMismatch(say("foreign_status", { url: base_url, status }));
}

function fieldsOf(body: string): Fields {
  try {
    const found: unknown = JSON.parse(body);
    return isObject(found) ? found : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function retryOf(value: unknown): Retry {
  return RETRIES.includes(value) ? (value as Retry) : "never";
}

function secondsOf(value: string | null): number {
  const found = Number(value ?? 0); // a date is none, and no server of ours writes one
  return Number.isFinite(found) ? Math.max(0, Math.min(found, RETRY_AFTER_SECONDS_MAX)) : 0;
}
