/** An instruction that a machine has accepted: its lines as they come, and its result. */

import { checkWait } from "./answering.js";
import { Answers } from "./answers.js";
import type { Door, RequestOptions } from "./door.js";
import { checked, type Functions, type HostFunction } from "./functions.js";
import type { Instruction as InstructionInfo, InstructionText, Interrupted } from "./generated/api.js";
import { MachineNotFound, StillRunning } from "./generated/errors.js";
import * as inputs from "./inputs.js";
import { Deadline } from "./pauses.js";
import { Call, Display, Gathering, Line, type Result } from "./results.js";
import { say } from "./sentences.js";
import { START, TapeReader, pages, type Entries } from "./tape.js";

/** What code is run with. */
export interface ExecOptions extends RequestOptions {
  /** How long the code may run. */
  timeout_seconds?: number | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  /** What runs, and what waits, is interrupted first. */
  interrupt?: boolean | undefined;
  /** Functions of this program that the code may call. */
  functions?: Functions | undefined;
}

/** Whom to tell of what happens, how long to wait, and the functions that the code may call here. */
export interface ResultOptions extends RequestOptions {
  /** How long the caller has; StillRunning then, and the instruction goes on. */
  wait_seconds?: number | undefined;
  on_stdout?: ((line: Line) => unknown) | undefined;
  on_stderr?: ((line: Line) => unknown) | undefined;
  on_display?: ((display: Display) => unknown) | undefined;
  functions?: Functions | undefined;
}

export interface StreamOptions extends RequestOptions {
  wait_seconds?: number | undefined;
  functions?: Functions | undefined;
}

type CheckedFunctions = ReadonlyMap<string, HostFunction>;
export interface InstructionParts {
  /** Accepted just now, by us: none of its calls has been answered before. */
  fresh?: boolean;
  functions?: Functions | undefined;
  source?: Entries;
}

/** Numbered from 0 within its machine. Whoever drops this object loses nothing: the machine and its tape keep it. */
export class Instruction {
  readonly machine_name: string;
  readonly number: number;
  readonly #door: Door;
  readonly #path: string;
  readonly #functions: CheckedFunctions;
  readonly #answers: Answers;
  #fresh: boolean;
  #source: Entries | null;
  #result: Result | null = null;

  /** @internal Machines make them. */
  constructor(door: Door, machine: string, number: number, parts: InstructionParts = {}) {
    this.machine_name = machine;
    this.number = inputs.instructionNumber(number);
    this.#door = door;
    this.#path = `/machine/${machine}`;
    this.#functions = checked(parts.functions);
    this.#answers = new Answers(door, machine, number);
    this.#fresh = parts.fresh === true;
    this.#source = parts.source ?? null;
  }

  async info(options: RequestOptions = {}): Promise<InstructionInfo> {
    return await this.#door.get<InstructionInfo>("Instruction", `${this.#path}/exec/${this.number}`, {}, options);
  }

  /** This one alone, whether it runs or still waits behind others. False when it has ended already.
   *
   * Code may catch the first interrupt; a second one insists, and kills what still runs, with its variables. */
  async interrupt(options: RequestOptions = {}): Promise<boolean> {
    const request = { instruction: this.number };
    return (await this.#door.post<Interrupted>("Interrupted", `${this.#path}/interrupt`, request, { signal: options.signal })).interrupted;
  }

  /** Waits for it; StillRunning after `wait_seconds`, when they are given. The same result again when asked again. */
  async result(options: ResultOptions = {}): Promise<Result> {
    if (this.#result !== null) return this.#result;
    const { on_stdout, on_stderr, on_display } = options;
    for await (const happenings of this.#follow(options)) {
      for (const one of happenings) {
        const told: ((happening: never) => unknown) | undefined = one instanceof Display ? on_display : one.stream === "stderr" ? on_stderr : on_stdout;
        if (told !== undefined) await told(one as never);
      }
    }
    return this.#ended();
  }

  /** Its lines from the first on, as they come, until it ends; then `result()` has the end. */
  async *stream(options: StreamOptions = {}): AsyncGenerator<Line, void, undefined> {
    for await (const happenings of this.#follow(options)) {
      for (const one of happenings) if (one instanceof Line) yield one;
    }
  }

  #ended(): Result {
    if (this.#result === null) throw new StillRunning(say("not_ended", { number: this.number, machine: this.machine_name }));
    return this.#result;
  }

  // --- following it through the tape -----------------------------------------------------------------------------------------------------

  /** What happens, entry by entry. */
  async *#follow(options: StreamOptions): AsyncGenerator<readonly (Line | Display)[], void, undefined> {
    checkWait(this.#door.base_url, this.machine_name, this.number);
    const functions = options.functions === undefined ? this.#functions : checked(options.functions);
    const [gathering, deadline, signal] = [new Gathering(this.number), new Deadline(options.wait_seconds), this.#door.joined(options.signal)];
    const done = await this.#explained(() => this.#answered(functions, deadline, signal));
    const source = this.#open(deadline);
    try {
      while (gathering.result === null) {
        const entry = await this.#explained(() => source.next(signal));
        const happenings = gathering.take(entry);
        if (happenings[0] instanceof Call) await this.#answer(happenings[0], functions, done, signal);
        else yield happenings as readonly (Line | Display)[];
      }
      this.#result = gathering.result;
      await source.finish();
    } finally {
      source.close();
    }
  }

  async #answer(call: Call, functions: CheckedFunctions, done: ReadonlySet<number>, signal: AbortSignal): Promise<void> {
    const act = functions.get(call.name);
    if (act !== undefined && !done.has(call.number)) await this.#answers.answer(call, act, signal);
  }

  #open(deadline: Deadline): Entries {
    const source = this.#source;
    this.#source = null;
    if (source === null) return new TapeReader(this.#door, `${this.#path}/tape`, START, deadline, this.number);
    source.deadline = deadline;
    return source;
  }

  async #explained<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      const words = { number: this.number, machine: this.machine_name };
      if (error instanceof StillRunning) throw new StillRunning(say("not_ended", words));
      if (error instanceof MachineNotFound) throw new MachineNotFound(say("deleted_before_end", words));
      throw error;
    }
  }

  /** Of an instruction that was begun earlier: calls that have their answer. The others are still waited for. */
  async #answered(functions: CheckedFunctions, deadline: Deadline, signal: AbortSignal): Promise<ReadonlySet<number>> {
    const done = new Set<number>();
    if (functions.size === 0 || this.#fresh) {
      this.#fresh = false; // a second reading sees calls that the first has answered
      return done;
    }
    for await (const entry of pages(this.#door, `${this.#path}/tape`, START, { instruction: this.number, deadline, signal })) {
      if (entry.type === "answered") done.add(entry.call);
    }
    return done;
  }
}

export function instructionText(code: string, options: ExecOptions): InstructionText {
  const names = [...checked(options.functions).keys()].sort();
  const text: InstructionText = { code: inputs.code(code) };
  const [timeout_seconds, env] = [inputs.timeoutSeconds(options.timeout_seconds), inputs.environment(options.env)];
  if (timeout_seconds !== undefined) text.timeout_seconds = timeout_seconds;
  if (env !== undefined) text.env = env;
  if (names.length > 0) text.functions = names;
  return text;
}
