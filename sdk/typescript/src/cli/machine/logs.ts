/** `everforge machine logs`: the tape for people, and for programs that go on where they stopped. */

import type { Given } from "../given.js";
import { Follower } from "../terminal/follower.js";

export async function logs(given: Given): Promise<void> {
  const wanted = {
    follow: given.flag("follow"),
    after: given.number("after"),
    instruction: given.number("instruction"),
    output: given.flag("output"),
    positions: given.flag("positions"),
    json: given.json,
  };
  await new Follower(given.needed("name"), wanted, given.text("cursor_file")).run();
}
