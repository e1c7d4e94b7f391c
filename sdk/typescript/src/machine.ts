/** A machine, as a program holds it: a name and a door. Making one of these objects asks nobody anything. */

import { checkWait } from "./answering.js";
import { SLOW_SECONDS, newKey, type Door, type RequestOptions } from "./door.js";
import { Egress } from "./egress.js";
import { Files } from "./files.js";
import type * as api from "./generated/api.js";
import type { Entry } from "./generated/entries.js";
import { ProtocolError } from "./generated/errors.js";
import { machineName } from "./inputs.js";
import { Instruction, instructionText, type ExecOptions, type ResultOptions } from "./instruction.js";
import { segment } from "./paths.js";
import { Deadline } from "./pauses.js";
import { Repl } from "./repl.js";
import type { Line, Result } from "./results.js";
import { say } from "./sentences.js";
import { START, TapeReader, following, pages } from "./tape.js";

const INSTRUCTIONS_A_PAGE = 100;

export type RunOptions = ExecOptions & ResultOptions;

export interface TapeOptions extends RequestOptions {
  after?: number | undefined;
  /** Goes on for as long as the machine is there. */
  follow?: boolean | undefined;
  wait_seconds?: number | undefined;
}

/** Nothing is held that would have to be given back: the machine goes on, and sleeps when it is idle. `delete()` ends it. */
export class Machine {
  readonly name: string;
  readonly files: Files;
  readonly egress: Egress;
  readonly #door: Door;
  readonly #path: string;

  /** @internal A client makes them. */
  constructor(door: Door, name: string) {
    this.name = machineName(name); // it becomes part of an address: nothing else may
    this.#door = door;
    this.#path = `/machine/${this.name}`;
    this.files = new Files(door, this.#path);
    this.egress = new Egress(door, this.#path);
  }

  // --- instructions ----------------------------------------------------------------------------------------------------------------------

  /** Runs code and waits for its end. An exception of the code is `result.error`; only what goes wrong around it is thrown. */
  async run(code: string, options: RunOptions = {}): Promise<Result> {
    checkWait(this.#door.base_url, this.name);
    const deadline = new Deadline(options.wait_seconds);
    const instruction = await this.exec(code, options);
    const { on_stdout, on_stderr, on_display, signal } = options;
    return await instruction.result({ on_stdout, on_stderr, on_display, signal, wait_seconds: deadline.left ?? undefined });
  }

  /** Hands code over and returns as soon as it is accepted. Calls of `functions` are answered while its result or its lines are waited for. */
  async exec(code: string, options: ExecOptions & { key?: string | undefined } = {}): Promise<Instruction> {
    const { functions, signal, interrupt } = options;
    const request = { instruction: instructionText(code, options), interrupt: interrupt === true ? true : undefined };
    const asking = { key: options.key ?? newKey(), signal };
    const accepted = await this.#door.post<api.Accepted>("Accepted", `${this.#path}/exec`, request, asking);
    return new Instruction(this.#door, this.name, accepted.instruction_seq, { fresh: options.key === undefined, functions });
  }

  /** Runs code and gives its lines as they come; throws InstructionFailed at the end if it does not end well. */
  async *stream(code: string, options: ExecOptions = {}): AsyncGenerator<Line, void, undefined> {
    checkWait(this.#door.base_url, this.name);
    const instruction = await this.exec(code, options);
    yield* instruction.stream({ signal: options.signal });
    (await instruction.result({ signal: options.signal })).raiseForError();
  }

  /** One that was accepted earlier, by this program or another. */
  instruction(number: number): Instruction {
    return new Instruction(this.#door, this.name, number);
  }

  /** From the first, or behind one; pages by itself. */
  async *instructions(options: RequestOptions & { after?: number | undefined } = {}): AsyncGenerator<api.Instruction, void, undefined> {
    let after: number | null | undefined = options.after;
    do {
      const query = { after, limit: INSTRUCTIONS_A_PAGE };
      const page: api.InstructionList = await this.#door.get("InstructionList", `${this.#path}/exec`, query, { signal: options.signal });
      yield* page.instructions;
      after = page.next;
    } while (after !== null);
  }

  /** One connection for many instructions: quickest for small ones, and hears what other clients do. */
  repl(options: { after?: number | undefined } = {}): Repl {
    return new Repl(this.#door, this.name, options.after ?? null);
  }

  /** Every entry behind `after`, each once. */
  tape(options: TapeOptions = {}): AsyncGenerator<Entry, void, undefined> {
    const { after = START, follow, wait_seconds, signal } = options;
    const path = `${this.#path}/tape`;
    if (follow !== true) return pages(this.#door, path, after, { signal });
    return following(new TapeReader(this.#door, path, after, new Deadline(wait_seconds)), this.#door.joined(signal));
  }

  /** What runs now; with `pending` what waits, too. Was there anything? */
  async interrupt(options: RequestOptions & { pending?: boolean | undefined } = {}): Promise<boolean> {
    const request = { pending: options.pending === true ? true : undefined };
    return (await this.#door.post<api.Interrupted>("Interrupted", `${this.#path}/interrupt`, request, { signal: options.signal })).interrupted;
  }

  /** What could stand at the cursor (the end, when none is given), as the live machine sees it. */
  async complete(code: string, cursor?: number, options: RequestOptions = {}): Promise<api.Completed> {
    return await this.#door.post("Completed", `${this.#path}/complete`, { code, cursor }, { again: true, signal: options.signal });
  }

  // --- the machine itself ------------------------------------------------------------------------------------------------------------------

  async info(options: RequestOptions = {}): Promise<api.Machine> {
    return await this.#door.get("Machine", this.#path, {}, options);
  }

  /** What is given is changed; tags and metadata as a whole. `expires_at: "never"` clears it. */
  async update(change: api.MachineChange & RequestOptions): Promise<api.Machine> {
    const { signal, ...request } = change;
    return await this.#door.post("Machine", this.#path, request, { again: true, method: "PATCH", signal });
  }

  /** At once and for ever, whatever it is doing. */
  async delete(options: RequestOptions = {}): Promise<void> {
    await this.#door.delete(this.#path, {}, options);
  }

  /** Answers when it is asleep. */
  async hibernate(options: RequestOptions = {}): Promise<api.Machine> {
    return await this.#slow("Machine", "hibernate", null, { again: true, ...options });
  }

  /** Not needed before an instruction: that wakes it by itself. */
  async wake(options: RequestOptions = {}): Promise<api.Machine> {
    return await this.#slow("Machine", "wake", null, { again: true, ...options });
  }

  /** A fresh interpreter and fresh files. The snapshot that brings back what was before, where there was something.
   *
   * With `discard` a machine that is awake is not saved first: what is there now is gone. It is the way back of one that cannot be saved. */
  async reset(options: RequestOptions & { discard?: boolean | undefined } = {}): Promise<string | null> {
    const request = { discard: options.discard === true ? true : undefined };
    return (await this.#slow<api.WasReset>("WasReset", "reset", request, { signal: options.signal })).undo;
  }

  // --- copies and points to go back to -------------------------------------------------------------------------------------------------------

  /** A copy of the living machine, memory and files, that goes its own way from now on. */
  async fork(name?: string, options: RequestOptions = {}): Promise<Machine> {
    const [made] = await this.#fork({ names: name === undefined ? undefined : [name] }, options);
    if (made === undefined) throw new ProtocolError(say("answer_lacks", { names: "machine_names" }));
    return made;
  }

  /** Several at once, for the price of one save. */
  async forks(count?: number, options: RequestOptions & { names?: readonly string[] | undefined } = {}): Promise<Machine[]> {
    return await this.#fork({ names: options.names, count }, options);
  }

  async #fork(request: object, options: RequestOptions): Promise<Machine[]> {
    const made = await this.#slow<api.Forked>("Forked", "fork", request, { key: newKey(), signal: options.signal });
    return made.machine_names.map((name) => new Machine(this.#door, name));
  }

  /** A point to go back to or to fork from; kept for as long as it has a name. */
  async snapshot(name?: string, options: RequestOptions = {}): Promise<api.Snapshot> {
    return await this.#slow("Snapshot", "snapshots", { name }, { signal: options.signal });
  }

  async snapshots(options: RequestOptions = {}): Promise<api.Snapshot[]> {
    return (await this.#door.get<api.SnapshotList>("SnapshotList", `${this.#path}/snapshots`, {}, options)).snapshots;
  }

  async deleteSnapshot(snapshot: string, options: RequestOptions = {}): Promise<void> {
    await this.#door.delete(`${this.#path}/snapshots/${segment(snapshot)}`, {}, options);
  }

  /** To a snapshot by id or name, to the state right after an instruction by its number, or to the newest snapshot. `undo` undoes it.
   *
   * `discard` as for `reset`. */
  async rollback(to?: string | number, options: RequestOptions & { discard?: boolean | undefined } = {}): Promise<api.RolledBack> {
    const request = { to, discard: options.discard === true ? true : undefined };
    return await this.#slow("RolledBack", "rollback", request, { signal: options.signal });
  }

  async #slow<T>(shape: Parameters<Door["post"]>[0], what: string, request: object | null, asking: Parameters<Door["post"]>[3]): Promise<T> {
    return await this.#door.post<T>(shape, `${this.#path}/${what}`, request, { ...asking, silence_seconds: SLOW_SECONDS });
  }
}
