/** Words of the prompt's own. All others that begin with % are IPython's, and go to the machine. */

import type { Machine } from "../../node.js";
import { nameOf } from "../machine/snapshot.js";

const HELP = `\
Enter runs a line; a block ends with an empty line, or Alt-Enter. Tab completes from the live machine.
Ctrl-C interrupts what runs; a second one kills what still runs, with the machine's variables; a third stops waiting.
Ctrl-D leaves; the machine stays.
%machine           what this machine is, and how it does
%fork [NAME]       a copy of it, memory and files
%snapshot [NAME]   a point to go back to
%rollback [POINT]  back to a snapshot, or to right after an instruction by its number
%files [FOLDER]    what lies in its home folder
%help              this`;

/** What it says. */
export type Act = (machine: Machine, word: string | undefined) => Promise<string>;

async function aboutMachine(machine: Machine): Promise<string> {
  const info = await machine.info();
  const shown = {
    name: info.name, state: info.state, image: info.image, memory: `${String(Math.floor(info.memory_bytes / 2 ** 20))} of ${String(info.memory_mb)} MB`,
    instructions: info.next_instruction, position: info.position, created: info.created_at, error: info.error,
  };
  const known = Object.entries(shown).filter(([, value]) => value !== null);
  return known.map(([name, value]) => `${name.padEnd(13)}${String(value)}`).join("\n");
}

async function fork(machine: Machine, word: string | undefined): Promise<string> {
  const made = await machine.fork(word);
  return `${made.name}: enter it with \`everforge repl ${made.name}\``;
}

async function snapshot(machine: Machine, word: string | undefined): Promise<string> {
  const made = await machine.snapshot(word);
  const name = nameOf(made);
  return `${name}: come back with %rollback ${name}`;
}

async function rollback(machine: Machine, word: string | undefined): Promise<string> {
  const back = await machine.rollback(word !== undefined && /^\d+$/.test(word) ? Number(word) : word);
  return `back at ${nameOf(back.snapshot)}${back.undo ? `; %rollback ${back.undo} undoes it` : ""}`;
}

async function files(machine: Machine, word: string | undefined): Promise<string> {
  const lines: string[] = [];
  for await (const file of machine.files.list(word ?? "")) lines.push(`${String(file.size_bytes).padStart(12)}  ${file.name}${file.kind === "folder" ? "/" : ""}`);
  return lines.join("\n") || "nothing";
}

export const COMMANDS: Readonly<Record<string, Act>> = {
  "%files": files, "%fork": fork, "%help": () => Promise.resolve(HELP), "%machine": aboutMachine, "%rollback": rollback, "%snapshot": snapshot,
};

/** With its one word, if it has one; undefined for what the machine is to run. */
export function commandOf(text: string): { act: Act; word: string | undefined } | undefined {
  const words = text.trim().split(/\s+/);
  const act = words.length <= 2 && Object.hasOwn(COMMANDS, words[0] ?? "") ? COMMANDS[words[0] ?? ""] : undefined;
  return act === undefined ? undefined : { act, word: words[1] };
}
