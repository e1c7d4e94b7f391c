/** The steps of the contract (sdk/contract/README.md), done with this SDK, in Node and in browsers. */

import { EverforgeError, Everforge, Instruction, Machine, Repl, type EverforgeOptions, type NewMachineOptions } from "../../src/surface.js";
import { call } from "./account.js";
import { exec, interrupt, run, stream, watched } from "./code.js";
import { Given, collected, plain } from "./given.js";
import { MACHINE_STEPS, nothing, remembered } from "./machines.js";
import { problems, type Fields, type Json } from "./matching.js";
import type { Done, Thing } from "./things.js";
import { Variables } from "./variables.js";

export interface Step {
  do: string;
  on?: string;
  as?: string;
  with?: Fields;
  keep?: Record<string, string>;
  gives?: Json;
  fails?: Json;
  client?: string;
  only?: "sdk" | "cli";
  why?: string;
}

export class WrongStep extends Error {}

export class Driver {
  readonly #variables: Variables;
  readonly #things = new Map<string, Thing>();
  readonly #clients: Everforge[];

  constructor(variables: Fields) {
    this.#variables = new Variables(variables);
    this.#clients = [new Everforge({ token: this.#variables.get("token"), base_url: this.#variables.get("url") })];
  }

  /** Tells of each step that went well. Throws WrongStep for the first that did not. */
  async run(steps: readonly Step[], tell: (step: Step, number: number) => void = () => undefined): Promise<void> {
    try {
      for (const [number, step] of steps.entries()) {
        if ((step.only ?? "sdk") !== "sdk") continue;
        await this.#step(step);
        tell(step, number);
      }
    } finally {
      for (const client of this.#clients) await client.close();
    }
  }

  async #step(step: Step): Promise<void> {
    const what = JSON.stringify({ ...step, gives: undefined, why: undefined }).slice(0, 400);
    let [got, error]: [Json, Fields | null] = [null, null];
    try {
      got = this.#remember(step, await this.#do(step, new Given(this.#variables.filled(step.with ?? {}) as Fields)));
    } catch (thrown) {
      if (!(thrown instanceof EverforgeError)) throw new WrongStep(`${what}: ${String(thrown)}`, { cause: thrown });
      error = { code: thrown.code, message: thrown.message };
    }
    if (step.fails !== undefined && error === null) throw new WrongStep(`${what} should have failed, and gave ${JSON.stringify(got)}`);
    if (step.fails === undefined && error !== null) throw new WrongStep(`${what} failed: ${JSON.stringify(error)}`);
    const wanted = error === null ? step.gives : step.fails;
    const found = wanted === undefined ? [] : problems(this.#variables.filled(wanted), error ?? got);
    if (found.length > 0) throw new WrongStep(`${what}: ${found.join("; ")}`);
    if (error === null) this.#variables.keep(step.keep ?? {}, got);
  }

  #remember(step: Step, { got, made }: Done): Json {
    if (made !== undefined && step.as !== undefined) {
      this.#things.set(step.as, made);
      if (made instanceof Machine) this.#variables.set(step.as, made.name);
    }
    return plain(got);
  }

  async #do(step: Step, given: Given): Promise<Done> {
    if (step.do === "cut") return await nothing(this.#cut());
    const on = step.on === undefined ? undefined : this.#things.get(step.on);
    if (on instanceof Machine) return await this.#ofMachine(step.do, on, given);
    if (on instanceof Instruction) return await this.#ofInstruction(step.do, on, given);
    if (on instanceof Repl) return await this.#ofRepl(step.do, on, given);
    if (step.on !== undefined) throw new Error(`nothing was remembered as ${step.on}`);
    const client = step.client === undefined ? this.#clients[0] : this.#things.get(step.client);
    if (!(client instanceof Everforge)) throw new Error(`there is no client ${step.client ?? ""}`);
    return await this.#ofClient(step.do, client, given);
  }

  async #ofClient(what: string, client: Everforge, given: Given): Promise<Done> {
    switch (what) {
      case "client":
        return this.#newClient(given.without<EverforgeOptions>());
      case "whoami":
        return { got: { account: await client.whoami() } };
      case "create":
        return remembered(await client.create(given.without<NewMachineOptions>()));
      case "machine":
        return remembered(client.machine(given.text("name")));
      case "machines":
        return { got: (await collected(client.machines(given.without<object>()))).map(({ name }) => name) };
      case "call":
        return { got: await call(client, `${given.text("group")}.${given.text("method")}`, new Given(given.object("arguments") as Fields)) };
      default:
        throw new Error(`there is no step ${what} of a client`);
    }
  }

  #newClient(options: EverforgeOptions): Done {
    const made = new Everforge(options);
    this.#clients.push(made);
    return { got: null, made };
  }

  async #ofMachine(what: string, machine: Machine, given: Given): Promise<Done> {
    switch (what) {
      case "run":
        return await run(machine, given, this.#cut);
      case "exec":
        return await exec(machine, given);
      case "stream":
        return await stream(machine, given, this.#cut);
      case "interrupt":
        return await interrupt(machine, given);
      case "instruction": {
        const made = machine.instruction(given.maybeNumber("number") ?? 0);
        return { got: { number: made.number }, made };
      }
      case "repl":
        return { got: null, made: await machine.repl({ after: given.maybeNumber("after") }).open() };
      default: {
        const act = MACHINE_STEPS[what];
        if (act === undefined) throw new Error(`there is no step ${what} of a machine`);
        return await act(machine, given);
      }
    }
  }

  async #ofInstruction(what: string, instruction: Instruction, given: Given): Promise<Done> {
    if (what === "result") return await watched(instruction, given, this.#cut);
    if (what === "interrupt") return await interrupt(instruction, given);
    if (what === "info") return { got: await instruction.info() };
    throw new Error(`there is no step ${what} of an instruction`);
  }

  async #ofRepl(what: string, repl: Repl, given: Given): Promise<Done> {
    switch (what) {
      case "run":
        return await run(repl, given, this.#cut);
      case "exec":
        return await exec(repl, given);
      case "stream":
        return await stream(repl, given, this.#cut);
      case "complete":
        return { got: await repl.complete(given.text("code"), given.maybeNumber("cursor")) };
      case "position":
        return { got: { position: repl.position } };
      case "interrupt":
        return await interrupt(repl, given);
      case "ping":
        return await nothing(repl.ping());
      case "close":
        return await nothing(repl.close());
      default:
        throw new Error(`there is no step ${what} of a repl`);
    }
  }

  readonly #cut = async (): Promise<void> => {
    await (await fetch(`${this.#variables.get("control")}/cut`, { signal: AbortSignal.timeout(10_000) })).arrayBuffer();
  };
}
