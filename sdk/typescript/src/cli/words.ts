/** The words of a command line, told apart: options and their values, and the rest. */

import { near } from "./closeness.js";
import type { Command, Parameter } from "./commands.js";
import { WrongUsage } from "./wrongusage.js";

export interface Words {
  /** all that were given of an option, in order */
  values: Map<Parameter, string[]>;
  /** options as they came */
  order: Parameter[];
  rest: string[];
  help: boolean;
}

const HELP = ["-h", "--help"];

export function optionsOf(command: Command): Parameter[] {
  return command.parameters.filter((one) => !one.argument);
}

/** Options may stand between arguments; those of a group stand before the command. Throws WrongUsage. */
export function readWords(command: Command, words: readonly string[]): Words {
  const reader = new Reader(command, words);
  reader.read();
  return reader.found;
}

class Reader {
  readonly found: Words = { values: new Map(), order: [], rest: [], help: false };
  private at = 0;

  constructor(private readonly command: Command, private readonly words: readonly string[]) {}

  read(): void {
    while (this.at < this.words.length) {
      const word = this.words[this.at++] ?? "";
      if (word === "--") { this.takeRest(); return; }
      if (word.startsWith("--")) this.long(word);
      else if (word.startsWith("-") && word.length > 1) this.short(word);
      else {
        this.found.rest.push(word);
        if (this.command.group) { this.takeRest(); return; }
      }
    }
  }

  private takeRest(): void {
    this.found.rest.push(...this.words.slice(this.at));
    this.at = this.words.length;
  }

  private long(word: string): void {
    const equals = word.indexOf("=");
    const flag = equals < 0 ? word : word.slice(0, equals);
    const known = [...optionsOf(this.command).flatMap((one) => one.flags), ...HELP].filter((one) => one.startsWith("--"));
    if (!known.includes(flag)) {
      const nearest = near(flag, known).sort();
      throw new WrongUsage(`No such option: ${flag}${nearest.length > 0 ? ` (Possible options: ${nearest.join(", ")})` : ""}`, this.command.path);
    }
    this.take(flag, equals < 0 ? undefined : word.slice(equals + 1));
  }

  /** Several letters behind one dash are several flags. */
  private short(word: string): void {
    for (const letter of word.slice(1)) {
      const flag = `-${letter}`;
      if (!HELP.includes(flag) && this.option(flag) === undefined) throw new WrongUsage(`No such option: ${flag}`, this.command.path);
      this.take(flag, undefined);
    }
  }

  private option(flag: string): Parameter | undefined {
    return optionsOf(this.command).find((one) => one.flags.includes(flag));
  }

  private take(flag: string, value: string | undefined): void {
    const option = this.option(flag);
    const takesNone = option === undefined || option.kind === "flag";
    if (takesNone && value !== undefined) throw new WrongUsage(`Option '${flag}' does not take a value.`);
    if (option === undefined) {
      this.found.help = true;
      return;
    }
    if (!takesNone && value === undefined && this.at >= this.words.length) throw new WrongUsage(`Option '${flag}' requires an argument.`);
    const text = takesNone ? "" : (value ?? this.words[this.at++] ?? "");
    this.found.order.push(option);
    this.found.values.set(option, [...(this.found.values.get(option) ?? []), text]);
  }
}
