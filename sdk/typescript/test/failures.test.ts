/** What a refusal becomes, and why nobody could be reached. No server. */

import { expect, test } from "vitest";

import { Unreached, errorOf } from "../src/failures.js";
import { causeOf } from "../src/node/causes.js";

const BODY = JSON.stringify({ code: "TooMany", message: "slowly" });

function waitOf(retry_after: string | null): number {
  const headers = { get: (name: string) => (name === "retry-after" ? retry_after : null) };
  return errorOf(429, headers, BODY, "http://x").retryAfterSeconds;
}

test.each(["3600", "3601", "1e9", "1e308"])("a server cannot make its clients wait for ever: %s", (retry_after) => {
  expect(waitOf(retry_after)).toBe(3600);
});

test.each([null, "", "-1", "NaN", "Wed, 21 Oct 2015 07:28:00 GMT"])("what is no time to wait is none: %s", (retry_after) => {
  expect(waitOf(retry_after)).toBe(0);
});

test("a time to wait is kept as it is", () => {
  expect(waitOf("1.5")).toBe(1.5);
});

test.each([
  [{ code: "ECONNREFUSED", syscall: "connect" }, "refused"],
  [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, "unknown"],
  [{ code: "EAI_FAIL", syscall: "getaddrinfo" }, "unknown"],
  [{ code: "EINVAL", syscall: "getaddrinfo" }, "unknown"],
  [{ code: "EINVAL", syscall: "connect" }, "failed"],
  [{ code: "ETIMEDOUT", syscall: "connect" }, "slow"],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "untrusted"],
] as const)("%o is told as its cause", (fields, cause) => {
  const error = Object.assign(new Error("no"), fields);
  expect(causeOf(error)).toBe(cause);
  expect(new Unreached("no", causeOf(new AggregateError([error]))).why).toBe(new Unreached("no", cause).why);
});
