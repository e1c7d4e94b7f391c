/** One connection to one machine, for many instructions one after another. */

import { checkWait } from "./answering.js";
import { Channel } from "./channel.js";
import { read } from "./decoding.js";
import { bodyOf, newKey, type Door, type RequestOptions } from "./door.js";
import type { Completed, InstructionText } from "./generated/api.js";
import type { Entry } from "./generated/entries.js";
import { MachineNotFound, ProtocolError } from "./generated/errors.js";
import { Instruction, instructionText, type ExecOptions, type ResultOptions } from "./instruction.js";
import { ChannelClosed, type Listener } from "./listener.js";
import type { Line, Result } from "./results.js";
import { say } from "./sentences.js";

export type ReplRunOptions = ExecOptions & Omit<ResultOptions, "wait_seconds">;

/** Finds its way back after a cut or a restart of the server: no line comes twice, none is lost. `close()` it, or say `await using`. */
export class Repl {
  readonly machine_name: string;
  readonly #door: Door;
  readonly #channel: Channel;

  /** @internal Machines make them. */
  constructor(door: Door, machine: string, after: number | null) {
    this.machine_name = machine;
    this.#door = door;
    this.#channel = new Channel(door, machine, after);
  }

  /** Itself, connected. Not needed before an instruction. */
  async open(options: RequestOptions = {}): Promise<this> {
    await this.#channel.open(options.signal);
    return this;
  }

  /** The connection; the machine goes on. */
  async close(): Promise<void> {
    await this.#channel.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Of the last entry seen: `machine.repl({ after: position })` goes on behind it, in another program, too. */
  get position(): number | null {
    return this.#channel.cursor;
  }

  /** As `machine.run`, over this connection. */
  async run(code: string, options: ReplRunOptions = {}): Promise<Result> {
    checkWait(this.#door.base_url, this.machine_name);
    const instruction = await this.exec(code, options);
    const { on_stdout, on_stderr, on_display, signal } = options;
    return await instruction.result({ on_stdout, on_stderr, on_display, signal });
  }

  /** As `machine.exec`, over this connection. */
  async exec(code: string, options: ExecOptions = {}): Promise<Instruction> {
    const text = instructionText(code, options);
    const key = newKey();
    let number: number | null = null;
    const ours = (entry: Entry): boolean => {
      if (entry.type === "accepted" && entry.key === key) number = entry.instruction;
      return number !== null && "instruction" in entry && entry.instruction === number;
    };
    await this.#channel.open(options.signal);
    const source = this.#channel.listen(ours, undefined, true);
    try {
      const seq = await this.#submit(text, options.interrupt === true, key, options.signal);
      return new Instruction(this.#door, this.machine_name, seq, { fresh: true, functions: options.functions, source });
    } catch (error) {
      source.close();
      throw error;
    }
  }

  /** Hands code over and gives its number, for whoever reads `entries()`: there `accepted` has the key, and all that follows the number. */
  async submit(code: string, options: Omit<ExecOptions, "env" | "functions"> & { key?: string | undefined } = {}): Promise<number> {
    const text = instructionText(code, { timeout_seconds: options.timeout_seconds });
    return await this.#submit(text, options.interrupt === true, options.key ?? newKey(), options.signal);
  }

  async #submit(instruction: InstructionText, interrupt: boolean, key: string, signal: AbortSignal | undefined): Promise<number> {
    const message = { type: "exec", key, instruction, ...(interrupt ? { interrupt } : {}) };
    const { instruction_seq } = await this.#channel.ask(message, true, signal);
    if (typeof instruction_seq !== "number") throw new ProtocolError(say("answer_lacks", { names: "instruction_seq" }));
    return instruction_seq;
  }

  /** As `machine.stream`, over this connection. */
  async *stream(code: string, options: ExecOptions = {}): AsyncGenerator<Line, void, undefined> {
    checkWait(this.#door.base_url, this.machine_name);
    const instruction = await this.exec(code, options);
    yield* instruction.stream({ signal: options.signal });
    (await instruction.result({ signal: options.signal })).raiseForError();
  }

  /** What runs now, whoever gave it; with `pending` what waits, too; or one instruction by its number. Was there anything? */
  async interrupt(instruction?: number, options: RequestOptions & { pending?: boolean | undefined } = {}): Promise<boolean> {
    const request = bodyOf({ pending: options.pending === true ? true : undefined, instruction });
    const reply = await this.#channel.ask({ type: "interrupt", ...request }, false, options.signal);
    return Boolean(reply["interrupted"]);
  }

  async complete(code: string, cursor?: number, options: RequestOptions = {}): Promise<Completed> {
    return read("Completed", await this.#channel.ask({ type: "complete", ...bodyOf({ code, cursor }) }, true, options.signal));
  }

  /** Is the server there? */
  async ping(options: RequestOptions = {}): Promise<void> {
    await this.#channel.ask({ type: "ping" }, true, options.signal);
  }

  /** As `entries`, from this very moment on, and for whoever wants to go on after an error: `next()`, and at last `close()`. */
  listen(): Listener {
    return this.#channel.listen(() => true);
  }

  /** Everything on the tape from here on, of all clients. Ends when the machine is deleted, or this repl closed. */
  async *entries(options: RequestOptions & { wait_seconds?: number | undefined } = {}): AsyncGenerator<Entry, void, undefined> {
    const listener = this.#channel.listen(() => true, options.wait_seconds);
    try {
      for (;;) yield await listener.next(options.signal);
    } catch (error) {
      if (!(error instanceof MachineNotFound) && !(error instanceof ChannelClosed)) throw error;
    } finally {
      listener.close();
    }
  }
}
