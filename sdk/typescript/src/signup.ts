/** A token of a server that does not know us yet: the two requests without one. */

import { Access, checkUrl } from "./access.js";
import { decode } from "./decoding.js";
import { Door, bodyOf, encode, type RequestOptions } from "./door.js";
import type { LoggedIn, SignedUp } from "./generated/api.js";
import { InvalidInput } from "./generated/errors.js";
import { segment } from "./paths.js";
import { say } from "./sentences.js";

/** Its `token` is shown this once, or null when it was mailed. Asked once: whether a cut request made the account, only its owner can know. */
export async function signUp(
  base_url: string,
  email: string,
  account_name: string,
  invitation?: string,
  options: RequestOptions = {},
): Promise<SignedUp> {
  const door = new Door(new Access(checkUrl(base_url), ""), options);
  try {
    const body = encode(bodyOf({ email, account_name, invitation }));
    return decode<SignedUp>("SignedUp", await door.ask("POST", `${door.base_url}/internal/signup`, body, { again: false }));
  } finally {
    door.close();
  }
}

/** With a one-time link: the server's address, and a token that is shown this once. Asked once, since the link is used up by it. */
export async function logIn(link: string, options: RequestOptions = {}): Promise<[base_url: string, logged_in: LoggedIn]> {
  const found = /^(.*)\/login\/([A-Za-z0-9_-]{1,200})$/.exec(link.trim());
  if (found === null) throw new InvalidInput(say("bad_link"));
  const [, before = "", code = ""] = found;
  const door = new Door(new Access(checkUrl(before), ""), options);
  try {
    return [door.base_url, decode<LoggedIn>("LoggedIn", await door.ask("POST", `${door.base_url}/login/${segment(code)}`, "{}", { again: false }))];
  } finally {
    door.close();
  }
}
