/** `everforge audit verify`. */

import { Chain, ChainBroken, type AuditHead, type Part } from "../../node.js";
import { EXITS } from "../commands.js";
import { connected } from "../connection.js";
import { local } from "../failures.js";
import type { Given } from "../given.js";
import { print } from "../output.js";
import { printJson } from "../tables.js";
import { BadValue } from "../wrongusage.js";
import { checked } from "./file.js";

export async function verify(given: Given): Promise<number | undefined> {
  try {
    tellSound(await found(given), given.json);
    return undefined;
  } catch (error) {
    if (!(error instanceof ChainBroken)) throw error;
    if (given.json) printJson({ sound: false, number: error.number, reason: error.reason });
    else print(`not sound: ${error.message}`);
    return EXITS.raised;
  }
}

async function found(given: Given): Promise<Chain | Part> {
  const file = given.text("file");
  const part = given.flag("part");
  if (file !== undefined) return local(file, () => checked(file, headOf(given.text("kept")), part));
  return connected(async (server) => {
    const inPart = part && (await server.audit.head()) === null;
    const kept = headOf(given.text("kept"));
    return inPart ? server.audit.verifyPart({ kept }) : server.audit.verify({ kept });
  });
}

function tellSound(sound: Chain | Part, json: boolean): void {
  const whole = sound instanceof Chain;
  const { count, head } = sound;
  if (json) {
    printJson({ sound: true, whole, entries: count, number: head.number, hash: head.hash });
    return;
  }
  print(`${whole ? "sound" : "sound as far as one account can tell"}: ${count} entries, the last is ${head.number}:${head.hash}`);
}

function headOf(text: string | undefined): AuditHead | undefined {
  if (text === undefined) return undefined;
  const [, number, hash] = /^(\d{1,18}):(.+)$/s.exec(text) ?? [];
  if (number === undefined || hash === undefined) throw new BadValue("give the number and the hash as they were printed, as 1234:5f3a...", "--kept");
  return { number: Number(number), hash };
}
