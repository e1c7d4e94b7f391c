import { expect, it } from "vitest";

import { COMMANDS } from "../../src/cli/commands.js";
import { handlerOf } from "../../src/cli/handlers.js";

const RUN = COMMANDS.filter((command) => !command.group || (command.runs_alone && command.path.length > 0));

it.each(RUN.map((command) => command.path.join(" ")))("everforge %s has something that does it", async (path) => {
  expect(await handlerOf(path.split(" "))).toBeTypeOf("function");
});
