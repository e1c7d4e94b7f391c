/** Steps of a machine that run no code. */

import type { Machine, api } from "../../src/surface.js";
import { callEgress } from "./account.js";
import { Given, collected } from "./given.js";
import type { Fields } from "./matching.js";
import type { Done } from "./things.js";

type Act = (machine: Machine, given: Given) => Promise<Done>;

export const MACHINE_STEPS: Readonly<Record<string, Act>> = {
  info: async (machine) => ({ got: await machine.info() }),
  update: async (machine, given) => ({ got: await machine.update(given.without<api.MachineChange>()) }),
  delete: async (machine) => await nothing(machine.delete()),
  hibernate: async (machine) => ({ got: await machine.hibernate() }),
  wake: async (machine) => ({ got: await machine.wake() }),
  reset: async (machine, given) => ({ got: { undo: await machine.reset({ discard: given.is("discard") }) } }),
  fork: async (machine, given) => remembered(await machine.fork(given.maybeText("name"))),
  forks: async (machine, given) => ({ got: (await machine.forks(given.maybeNumber("count"), given.without<object>("count"))).map(({ name }) => name) }),
  snapshot: async (machine, given) => ({ got: await machine.snapshot(given.maybeText("name")) }),
  snapshots: async (machine) => ({ got: await machine.snapshots() }),
  delete_snapshot: async (machine, given) => await nothing(machine.deleteSnapshot(given.text("snapshot"))),
  rollback: async (machine, given) => ({ got: await machine.rollback(given.fields["to"] as string | number | undefined, { discard: given.is("discard") }) }),
  instructions: async (machine, given) => ({ got: await collected(machine.instructions({ after: given.maybeNumber("after") })) }),
  tape: async (machine, given) => ({ got: await collected(machine.tape({ after: given.maybeNumber("after") })) }),
  complete: async (machine, given) => ({ got: await machine.complete(given.text("code"), given.maybeNumber("cursor")) }),
  file_write: async ({ files }, given) => ({ got: await files.write(given.text("path"), given.text("text")) }),
  file_read: async ({ files }, given) => ({ got: { text: await files.readText(given.text("path")) } }),
  file_list: async ({ files }, given) => ({ got: (await collected(files.list(given.maybeText("path")))).map(({ name }) => name) }),
  file_exists: async ({ files }, given) => ({ got: { exists: await files.exists(given.text("path")) } }),
  file_delete: async ({ files }, given) => await nothing(files.delete(given.text("path"), { recursive: given.is("recursive") })),
  call: async (machine, given) => ({ got: await callEgress(machine, given.text("method"), new Given(given.object("arguments") as Fields)) }),
};

/** What it comes to is that it was done. */
export async function nothing(act: Promise<void>): Promise<Done> {
  await act;
  return { got: null };
}

export function remembered(machine: Machine): Done {
  return { got: { name: machine.name }, made: machine };
}
