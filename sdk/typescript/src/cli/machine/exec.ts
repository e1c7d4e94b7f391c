/** `everforge machine exec`. */

import { makeFolder } from "../../node/folders.js";
import { machineNamed } from "../connection.js";
import { local } from "../failures.js";
import type { Given } from "../given.js";
import { pairs, timeout } from "../options.js";
import { print } from "../output.js";
import { isClosed, readAll } from "../stdin.js";
import { printJson } from "../tables.js";
import { BadValue } from "../wrongusage.js";
import { watch } from "./watching.js";

const CODE_BYTES_MAX = 16 * 1024 * 1024; // from stdin; no server takes more in one request

export async function exec(given: Given): Promise<number | undefined> {
  const name = given.needed("name");
  const code = given.needed("code") === "-" ? await fromStdin() : given.needed("code");
  const pictures = given.text("pictures");
  // Made before the code runs: afterwards would be too late to find that it cannot be.
  if (pictures !== undefined) await local(pictures, () => makeFolder(pictures));
  return machineNamed(name, async (machine) => {
    const options = { timeout_seconds: timeout(given.number("timeout_seconds")), env: pairs(given.texts("env"), "--env"), interrupt: given.flag("interrupt") };
    const give = () => machine.exec(code, options);
    if (!given.flag("detach")) return watch(machine, give, { pictures, json: given.json });
    const { number } = await give();
    if (given.json) printJson({ machine_name: name, instruction: number });
    else print(String(number));
    return undefined;
  });
}

async function fromStdin(): Promise<string> {
  if (isClosed()) throw new BadValue("stdin is closed", "CODE");
  const found = await readAll(CODE_BYTES_MAX);
  if (found.length > CODE_BYTES_MAX) throw new BadValue(`stdin has more than ${String(CODE_BYTES_MAX)} bytes`, "CODE");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(found);
  } catch {
    throw new BadValue(`stdin is not UTF-8 text (${firstWrong(found)})`, "CODE");
  }
}

/** Why and where, in the words of Python's decoder. */
export function firstWrong(bytes: Buffer): string {
  let at = 0;
  while (at < bytes.length) {
    const length = sequenceLength(bytes, at);
    if (length <= 0) {
      const why = length === 0 ? "invalid start byte" : length === -1 ? "invalid continuation byte" : "unexpected end of data";
      return `${why} at byte ${String(at)}`;
    }
    at += length;
  }
  return "invalid text";
}

/** Of the letter that begins here; 0: none does, -1: it is broken, -2: it is cut off. */
function sequenceLength(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  for (let i = 1; i < length; i++) {
    const next = bytes[at + i];
    if (next === undefined) return -2;
    const least = i > 1 ? 0x80 : first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
    const most = i > 1 ? 0xbf : first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
    if (next < least || next > most) return -1;
  }
  return length;
}
