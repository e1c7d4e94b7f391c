/** What it takes to reach a server, and what its parts may look like. */

import { InvalidInput } from "./generated/errors.js";
import { quoted } from "./quoting.js";
import { say } from "./sentences.js";

const TOKEN_CHARACTERS_MAX = 1024;

export class Access {
  readonly base_url: string;
  /** Empty before one has signed up. Not enumerable: it is nobody's to see in a log. */
  declare readonly token: string;
  /** For messages: where it was found. */
  readonly source: string;
  /** By somebody who means this server; else it is what the server on this computer left. */
  readonly was_given: boolean;

  constructor(base_url: string, token: string, source = "", was_given = true) {
    this.base_url = base_url;
    this.source = source;
    this.was_given = was_given;
    Object.defineProperty(this, "token", { value: token, enumerable: false });
  }
}

/** Without a slash at its end; InvalidInput that says what it should look like. */
export function checkUrl(text: string): string {
  const given = text.trim();
  const parts = /^(https?):\/\/([^/?#@\\\s\p{Cc}]+)(\/[^?#\s\p{Cc}]*)?$/iu.exec(given);
  const isAddress = parts !== null && !parts[2]?.includes("%") && URL.canParse(given) && new URL(given).hostname !== "";
  if (!isAddress) throw new InvalidInput(say("bad_address", { text: quoted(text) }));
  const [, scheme = "", place = "", path = ""] = parts;
  return `${scheme.toLowerCase()}://${place}${path.replace(/\/+$/, "")}`;
}

export function checkToken(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text) || text.length > TOKEN_CHARACTERS_MAX) throw new InvalidInput(say("bad_token"));
  return text;
}
