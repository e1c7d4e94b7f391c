/** What the SDK needs of a browser. */

import { Access, checkToken, checkUrl } from "../access.js";
import { ConfigurationBad } from "../generated/errors.js";
import { usePlatform, type Context, type Platform } from "../platform.js";
import { say } from "../sentences.js";
import { openSocket } from "./socket.js";
import { WebTransport } from "./transport.js";

const web: Platform = {
  agent: null, // a page may not choose it
  findAccess(token, base_url) {
    if (token === undefined || base_url === undefined) throw new ConfigurationBad(say("browser_access"));
    return new Access(checkUrl(base_url), checkToken(token), "the arguments");
  },
  transport: () => new WebTransport(),
  openSocket,
  context: <T>(): Context<T> => new Caller<T>(),
  disk: () => null,
};

/** Only as far as to the first await: there is nothing in browsers yet that knows more. */
class Caller<T> implements Context<T> {
  #value: T | undefined;

  run<R>(value: T, act: () => R): R {
    const before = this.#value;
    this.#value = value;
    try {
      return act();
    } finally {
      this.#value = before;
    }
  }

  get(): T | undefined {
    return this.#value;
  }
}

usePlatform(web);
