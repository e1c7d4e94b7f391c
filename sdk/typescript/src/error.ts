/** The root of the one error tree; its branches are made from the wire, in generated/errors.ts. */

import type { Retry } from "./generated/api.js";

/** Every error of ours. `code` is stable and the same in all languages; the message says what happened, to what, and what to do. */
export class EverforgeError extends Error {
  static readonly code: string = "Internal";
  static readonly httpStatus: number = 500;
  static readonly retry: Retry = "never";

  readonly code: string;
  readonly httpStatus: number;
  readonly retry: Retry;
  /** Not for messages: what else is known. */
  details: Record<string, unknown>;
  /** What the server calls the request, to be found in its log. */
  requestId: string | null = null;
  /** No sooner than this. */
  retryAfterSeconds = 0;

  constructor(message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.name = new.target.code === "Internal" ? "EverforgeError" : new.target.code;
    this.code = new.target.code;
    this.httpStatus = new.target.httpStatus;
    this.retry = new.target.retry;
    this.details = details;
  }

  /** One whose code this client is too young for: it stays as it is. */
  static unknown(message: string, code: string, httpStatus: number, retry: Retry): EverforgeError {
    const error = new EverforgeError(message);
    return Object.assign(error, { code, httpStatus, retry });
  }
}
