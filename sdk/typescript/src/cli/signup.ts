/** `everforge signup`. */

import { Access } from "../access.js";
import { ask } from "./asking.js";
import type { Given } from "./given.js";
import { keep, serverAddress } from "./login.js";
import { flush, print, say } from "./output.js";
import { printJson } from "./tables.js";

export async function signup(given: Given): Promise<void> {
  const { signUp } = await import("../node.js");
  const url = await serverAddress(given.text("api_base_url"));
  const email = await givenOrAsked(given.text("email"), "E-mail", "--email");
  const name = await givenOrAsked(given.text("account_name"), "Account name", "--account-name");
  const done = await signUp(url, email, name, given.text("invitation"));
  const token = done.token ?? null;
  if (given.json) printJson({ account: done.account, server: url, token, mailed: done.mailed });
  else if (token !== null) print(token);
  flush(); // it is shown this once, whatever comes of the rest
  if (token === null) {
    say(`everforge: check your mail for the token, then run \`everforge login --api-base-url ${url}\``);
    return;
  }
  await keep(new Access(url, token));
  say(`everforge: this is the token of ${done.account}, shown this once; you are logged in`);
}

async function givenOrAsked(text: string | undefined, question: string, option: string): Promise<string> {
  return text === undefined || text === "" ? ask(question, option) : text;
}
