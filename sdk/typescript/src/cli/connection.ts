/** The SDK, as a command uses it. */

import type { Everforge, EverforgeOptions, Machine } from "../node.js";
import { atEnd } from "./interruption.js";

/** To the server of the environment, of `everforge login`, or of this computer, while `work` lasts. */
export async function connected<T>(work: (server: Everforge) => Promise<T>, options: EverforgeOptions = {}): Promise<T> {
  const { Everforge } = await import("../node.js");
  const server = new Everforge(options);
  const closed = atEnd(() => server.close());
  try {
    return await work(server);
  } finally {
    closed();
    await server.close();
  }
}

/** One that is there already; a name that is not is answered with the near ones. */
export async function machineNamed<T>(name: string, work: (machine: Machine) => Promise<T>): Promise<T> {
  return connected((server) => suggesting(name, () => work(server.machine(name))));
}

/** That there is no machine of this name is said with the near ones, by whoever was asked for it; undefined: none was named. */
export async function suggesting<T>(name: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { MachineNotFound } = await import("../generated/errors.js");
    if (error instanceof MachineNotFound && name !== undefined) {
      const { nearNames } = await import("./names.js");
      error.message = error.message.replace(/\.+$/, "") + (await nearNames(name));
    }
    throw error;
  }
}
