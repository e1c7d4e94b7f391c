/** An instruction, watched until it ends: what it writes goes where it belongs, Ctrl-C goes to the machine. */

import type { Display, Instruction, Line, Machine, Result } from "../../node.js";
import { failureText, mimeBundle } from "../../results.js";
import { EXITS } from "../commands.js";
import { LONGER } from "../failures.js";
import { flush, print, put, say } from "../output.js";
import { printJson } from "../tables.js";
import { interrupting } from "./interrupting.js";
import { PictureFiles } from "./picturefiles.js";

export interface Watched {
  /** the folder for pictures */
  pictures: string | undefined;
  json: boolean;
}

/** The exit code. */
export async function watch(machine: Machine, give: () => Promise<Instruction>, { pictures, json }: Watched): Promise<number> {
  const [result, shown] = await interrupting(machine, give, async (instruction) => {
    const files = pictures === undefined ? undefined : new PictureFiles(pictures, `${machine.name}-${String(instruction.number)}`);
    const seen = new Shown(files, json);
    const done = await instruction.result({
      on_stdout: (line) => { seen.line(line); },
      on_stderr: (line) => { seen.line(line); },
      on_display: (display) => { seen.display(display); },
    });
    return [done, seen] as const;
  });
  shown.end(result);
  if (json) printJson({ machine_name: machine.name, ...fieldsOf(result), ...(shown.files === undefined ? {} : { pictures: shown.files.saved }) });
  if (result.end === "value") return EXITS.done;
  return result.end === "interrupted" || result.end === "cancelled" ? EXITS.interrupted : EXITS.raised;
}

function fieldsOf(result: Result): object {
  const { instruction, end, runtime_ms, value, data, error, traceback, note, retry, stdout, stderr, truncated } = result;
  const displays = result.displays.map((display) => display.data);
  return { instruction, end, runtime_ms, value, data, error, traceback, note, retry, displays, stdout, stderr, truncated };
}

/** What a terminal, or whoever reads stdout and stderr, gets to see. */
class Shown {
  /** streams whose last line has no end yet */
  private readonly open = { stdout: false, stderr: false };

  constructor(readonly files: PictureFiles | undefined, private readonly quiet: boolean) {}

  line(line: Line): void {
    if (this.quiet) return;
    this.open[line.stream] = line.partial;
    if (line.stream === "stderr") {
      say(line.text, line.end);
      return;
    }
    put(line.text + line.end);
    flush();
  }

  display(display: Display): void {
    const bundle = mimeBundle(display.data);
    this.files?.save(bundle);
    const text = bundle["text/plain"];
    if (!this.quiet && typeof text === "string") this.answer(text);
  }

  end(result: Result): void {
    this.files?.save(mimeBundle(result.data));
    if (this.quiet) return;
    const ok = result.end === "value";
    if (ok && typeof result.value === "string") this.answer(result.value);
    else if (!ok) this.tell(failureText(result.end, result.error, result.traceback) || `instruction ${String(result.instruction)} ended: ${result.end}`);
    if (result.note) this.tell(`everforge: ${result.note}`);
    if (result.end === "timed_out") this.tell(`everforge: ${LONGER}`);
  }

  /** On a line of its own. */
  private answer(text: string): void {
    print((this.open.stdout ? "\n" : "") + text.replace(/\n+$/, ""));
    this.open.stdout = false;
    flush();
  }

  private tell(text: string): void {
    say((this.open.stderr ? "\n" : "") + text.replace(/\n+$/, ""));
    this.open.stderr = false;
  }
}
