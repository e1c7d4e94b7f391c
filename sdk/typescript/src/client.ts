/** A server, as a program sees it. */

import { Audit } from "./audit.js";
import { Door, RETRY_SECONDS, newKey, type RequestOptions } from "./door.js";
import { EgressDefault, Secrets } from "./egress.js";
import type * as api from "./generated/api.js";
import { waitSeconds } from "./inputs.js";
import { Machine } from "./machine.js";
import { platform } from "./platform.js";
import { Accounts, Tokens } from "./tokens.js";
import { Webhooks } from "./webhooks.js";

const MACHINES_A_PAGE = 500;

export interface EverforgeOptions {
  token?: string | undefined;
  base_url?: string | undefined;
  /** For how long a request is tried again, where that is safe and may help. */
  retry_seconds?: number | undefined;
  /** Told false when a stream has lost the server, and true when it has found it again. */
  on_connection?: ((connected: boolean) => unknown) | undefined;
  /** Ends whatever this client waits for, as `close()` does. */
  signal?: AbortSignal | undefined;
}

export interface NewMachineOptions extends RequestOptions, Omit<api.NewMachine, "from_snapshot"> {
  /** A machine's name and a snapshot of it. */
  from_snapshot?: readonly [machine: string, snapshot: string] | api.SnapshotRef | undefined;
}

export interface MachinesOptions extends RequestOptions {
  /** All must match. */
  tags?: Readonly<Record<string, string>> | undefined;
  state?: api.State | undefined;
  prefix?: string | undefined;
  /** The `next` of a page that was read before. */
  after?: string | undefined;
}

/** Without arguments, in Node, it finds its server by itself: the environment, what `everforge login` left, or the server on this computer. */
export class Everforge {
  readonly base_url: string;
  readonly tokens: Tokens;
  readonly accounts: Accounts;
  readonly secrets: Secrets;
  readonly egress: EgressDefault;
  readonly audit: Audit;
  readonly webhooks: Webhooks;
  readonly #door: Door;

  constructor(options: EverforgeOptions = {}) {
    const retry_seconds = waitSeconds(options.retry_seconds, "retry_seconds") ?? RETRY_SECONDS;
    const access = platform().findAccess(options.token, options.base_url);
    const door = new Door(access, { retry_seconds, on_connection: options.on_connection, signal: options.signal });
    this.#door = door;
    this.base_url = access.base_url;
    this.tokens = new Tokens(door);
    this.accounts = new Accounts(door);
    this.secrets = new Secrets(door);
    this.egress = new EgressDefault(door);
    this.audit = new Audit(door);
    this.webhooks = new Webhooks(door);
  }

  /** The connections; machines go on. What still waits is told that this client is closed. */
  close(): Promise<void> {
    this.#door.close();
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // --- machines ----------------------------------------------------------------------------------------------------------------------------

  /** A new machine; what is not given is as the server has it. */
  async create(options: NewMachineOptions = {}): Promise<Machine> {
    const { signal, from_snapshot: from, ...rest } = options;
    const request = { ...rest, from_snapshot: from !== undefined && isPair(from) ? { machine: from[0], snapshot: from[1] } : from };
    const made = await this.#door.post<api.MachineCreated>("MachineCreated", "/machine/new", request, { key: newKey(), signal });
    return new Machine(this.#door, made.machine_name);
  }

  /** One that is there already. Asks nobody; whether it is there shows when it is used. */
  machine(name: string): Machine {
    return new Machine(this.#door, name);
  }

  /** Newest first; pages by itself. */
  async *machines(options: MachinesOptions = {}): AsyncGenerator<api.ListedMachine, void, undefined> {
    const tag = Object.entries(options.tags ?? {}).map(([name, value]) => `${name}=${value}`);
    let after: string | null | undefined = options.after;
    do {
      const query = { tag, state: options.state, name_prefix: options.prefix, limit: MACHINES_A_PAGE, after };
      const page: api.MachineList = await this.#door.get("MachineList", "/machine/list", query, { signal: options.signal });
      yield* page.machines;
      after = page.next;
    } while (after !== null);
  }

  // --- the account -------------------------------------------------------------------------------------------------------------------------

  async whoami(options: RequestOptions = {}): Promise<string> {
    return (await this.#door.get<api.Whoami>("Whoami", "/whoami", {}, options)).account;
  }

  async account(options: RequestOptions = {}): Promise<api.Account> {
    return await this.#door.get("Account", "/account", {}, options);
  }

  async usage(options: RequestOptions = {}): Promise<api.Usage> {
    return await this.#door.get("Usage", "/usage", {}, options);
  }
}

function isPair(from: NonNullable<NewMachineOptions["from_snapshot"]>): from is readonly [string, string] {
  return Array.isArray(from);
}
