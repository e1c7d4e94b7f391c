/** Why nobody could be reached: which of the wire's causes an error of the system is. */

import type { Cause } from "../failures.js";

const CAUSES: Readonly<Record<string, Cause>> = {
  ECONNREFUSED: "refused",
  ENOTFOUND: "unknown",
  EAI_AGAIN: "unknown",
  EAI_NODATA: "unknown",
  ETIMEDOUT: "slow",
  ERR_SOCKET_CONNECTION_TIMEOUT: "slow",
};
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)|ALTNAME/;

export function causeOf(error: Error): Cause {
  const codes = [error, ...(error instanceof AggregateError ? (error.errors as Error[]) : [])].map((one) => (one as NodeJS.ErrnoException).code ?? "");
  for (const code of codes) {
    const found = Object.hasOwn(CAUSES, code) ? CAUSES[code] : undefined;
    if (found !== undefined) return found;
    if (UNTRUSTED.test(code)) return "untrusted";
  }
  return "failed";
}
