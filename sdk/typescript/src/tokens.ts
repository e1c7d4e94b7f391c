/** The tokens of an account, and for the server's owner its accounts and invitations. */

import type { Door, RequestOptions } from "./door.js";
import type * as api from "./generated/api.js";
import { segment } from "./paths.js";

export class Tokens {
  /** @internal */
  constructor(private readonly door: Door) {}

  async list(options: RequestOptions = {}): Promise<api.Token[]> {
    return (await this.door.get<api.TokenList>("TokenList", "/tokens", {}, options)).tokens;
  }

  /** Its `token` is shown this once. With `tags` it is for machines that have all of them, and for nothing else. */
  async create(name?: string, options: RequestOptions & Omit<api.NewToken, "name"> = {}): Promise<api.TokenCreated> {
    const { signal, ...request } = options;
    return await this.door.post("TokenCreated", "/tokens", { name, ...request }, { signal });
  }

  /** At once; connections that use it are closed. */
  async revoke(id: string, options: RequestOptions = {}): Promise<void> {
    await this.door.delete(`/tokens/${segment(id)}`, {}, options);
  }

  /** To be opened once, on another computer: whoever does has a token that may what this one may. */
  async link(options: RequestOptions = {}): Promise<api.LogInLink> {
    return await this.door.post("LogInLink", "/links", null, { signal: options.signal });
  }
}

/** For the server's owner. */
export class Accounts {
  /** @internal */
  constructor(private readonly door: Door) {}

  async list(options: RequestOptions = {}): Promise<api.Account[]> {
    return (await this.door.get<api.AccountList>("AccountList", "/accounts", {}, options)).accounts;
  }

  /** Its `token` is shown this once. */
  async create(name: string, options: RequestOptions & { email?: string | undefined } = {}): Promise<api.AccountCreated> {
    return await this.door.post("AccountCreated", "/accounts", { account_name: name, email: options.email }, { signal: options.signal });
  }

  async delete(name: string, options: RequestOptions = {}): Promise<void> {
    await this.door.delete(`/accounts/${segment(name)}`, {}, options);
  }

  /** What the account may have at most, after the change: what is not given stays; 0 is no limit, -1 what the server's settings say. */
  async quota(name: string, change: RequestOptions & api.QuotaChange = {}): Promise<api.Quota> {
    const { signal, ...request } = change;
    return await this.door.post("Quota", `/accounts/${segment(name)}/quota`, request, { method: "PATCH", again: true, signal });
  }

  /** Whoever has it can sign up once. */
  async invite(options: RequestOptions & api.NewInvitation = {}): Promise<api.Invitation> {
    const { signal, ...request } = options;
    return await this.door.post("Invitation", "/invitations", request, { signal });
  }
}
