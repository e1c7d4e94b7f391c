/** Why nobody could be reached: which of the wire's causes an error of the system is. */

import type { Cause } from "../failures.js";

const CAUSES: Readonly<Record<string, Cause>> = {
  ECONNREFUSED: "refused",
  ETIMEDOUT: "slow",
  ERR_SOCKET_CONNECTION_TIMEOUT: "slow",
};
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)|ALTNAME/;

export function causeOf(error: Error): Cause {
  for (const one of [error, ...(error instanceof AggregateError ? (error.errors as Error[]) : [])]) {
    const { code = "", syscall } = one as NodeJS.ErrnoException;
    if (syscall === "getaddrinfo") return "unknown"; // whatever it says: what is no name at all has other codes than a name that nobody has
    const found = Object.hasOwn(CAUSES, code) ? CAUSES[code] : undefined;
    if (found !== undefined) return found;
    if (UNTRUSTED.test(code)) return "untrusted";
  }
  return "failed";
}
