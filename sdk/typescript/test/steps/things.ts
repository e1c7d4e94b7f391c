/** What a step came to. */

import type { Everforge, Instruction, Machine, Repl } from "../../src/surface.js";

/** What a step remembers. */
export type Thing = Everforge | Machine | Instruction | Repl;

export interface Done {
  got: unknown;
  made?: Thing;
}
