/** The way out: of one machine, of the account's new machines, and the secrets that are put in outside. */

import type { Door, RequestOptions } from "./door.js";
import type * as api from "./generated/api.js";
import { secretName } from "./inputs.js";
import { segment } from "./paths.js";

const ATTEMPTS_A_PAGE = 200;

/** Rules, and behind them what any request can be given. */
export type Rules = readonly string[] | readonly [...rules: string[], options: RequestOptions];

/** Of one machine. */
export class Egress {
  readonly #path: string;

  /** @internal */
  constructor(
    private readonly door: Door,
    path: string,
  ) {
    this.#path = `${path}/egress`;
  }

  async show(options: RequestOptions = {}): Promise<api.EgressPolicy> {
    return await this.door.get("EgressPolicy", this.#path, {}, options);
  }

  /** none, list (what the rules allow), packages (the package index, and the rules), or public. It counts at once. none drops the rules. */
  async set(policy: api.Egress, options: RequestOptions = {}): Promise<api.EgressPolicy> {
    return await this.#change({ egress: policy }, options);
  }

  /** A host (api.example.com), all below one (*.example.com), a port (example.com:8443), or plain TCP (tcp://db.example.com:5432). */
  async allow(...given: Rules): Promise<api.EgressPolicy> {
    const { rules, options } = parted(given);
    return await this.#change({ allow: rules }, options);
  }

  /** Takes rules away again. */
  async deny(...given: Rules): Promise<api.EgressPolicy> {
    const { rules, options } = parted(given);
    return await this.#change({ deny: rules }, options);
  }

  /** Everything that it has tried to reach, newest first; pages by itself. */
  async *log(options: RequestOptions = {}): AsyncGenerator<api.EgressAttempt, void, undefined> {
    let before: number | null | undefined;
    do {
      const page: api.EgressLog = await this.door.get("EgressLog", `${this.#path}/log`, { before, limit: ATTEMPTS_A_PAGE }, options);
      yield* page.attempts;
      before = page.next;
    } while (before !== null);
  }

  async #change(change: api.EgressChange, options: RequestOptions): Promise<api.EgressPolicy> {
    return await this.door.post("EgressPolicy", this.#path, change, { signal: options.signal });
  }
}

function parted(given: readonly (string | RequestOptions)[]): { rules: string[]; options: RequestOptions } {
  return {
    rules: given.filter((one) => typeof one === "string"),
    options: given.find((one) => typeof one !== "string") ?? {},
  };
}

/** Of the account's new machines. */
export class EgressDefault {
  /** @internal */
  constructor(private readonly door: Door) {}

  async show(options: RequestOptions = {}): Promise<api.EgressPolicy> {
    return await this.door.get("EgressPolicy", "/egress", {}, options);
  }

  /** Without arguments: the server's own default again. */
  async set(policy?: api.Egress, options: RequestOptions & { allow?: readonly string[] | undefined } = {}): Promise<api.EgressPolicy> {
    const change = { egress: policy, egress_allow: options.allow };
    return await this.door.post("EgressPolicy", "/egress", change, { again: true, method: "PUT", signal: options.signal });
  }
}

export interface SecretOptions extends RequestOptions {
  hosts: readonly string[];
  /** As in "Authorization: Bearer {}": put in by itself. */
  header?: string | undefined;
  /** Beside headers. */
  places?: readonly api.Place[] | undefined;
}

/** Values that machines use and never see. */
export class Secrets {
  /** @internal */
  constructor(private readonly door: Door) {}

  /** Machines have a placeholder in the environment variable `name`. In requests to these hosts, over TLS alone, the value takes its place: in headers,
   * and where `places` say so. */
  async set(name: string, value: string, options: SecretOptions): Promise<api.Secret> {
    const { hosts, header, places, signal } = options;
    const request = { value, hosts, header, places };
    return await this.door.post("Secret", `/secrets/${segment(secretName(name))}`, request, { again: true, method: "PUT", signal });
  }

  /** Without their values. */
  async list(options: RequestOptions = {}): Promise<api.Secret[]> {
    return (await this.door.get<api.SecretList>("SecretList", "/secrets", {}, options)).secrets;
  }

  async delete(name: string, options: RequestOptions = {}): Promise<void> {
    await this.door.delete(`/secrets/${segment(secretName(name))}`, {}, options);
  }
}
