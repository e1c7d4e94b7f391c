/** `everforge login` and `everforge logout`. */

import { ConfigurationBad, Unauthenticated } from "../generated/errors.js";
import { say as sentence } from "../sentences.js";
import { Access, checkToken, checkUrl } from "../access.js";
import { askSecret } from "./asking.js";
import { connected } from "./connection.js";
import { local } from "./failures.js";
import type { Given } from "./given.js";
import { print, say } from "./output.js";
import { printJson } from "./tables.js";
import { BadValue } from "./wrongusage.js";

export async function login(given: Given): Promise<void> {
  const link = given.text("link");
  const token = given.text("token");
  const url = given.text("api_base_url");
  if (link !== undefined && (token !== undefined || url !== undefined)) {
    throw new BadValue("a link has the address and the token in it: leave out --token and --api-base-url", "LINK");
  }
  const access = link === undefined ? await asked(token, url) : await linked(link);
  const account = await keep(access);
  if (given.json) printJson({ account, server: access.base_url });
  else print(`logged in as ${account} at ${access.base_url}`);
}

async function asked(token: string | undefined, url: string | undefined): Promise<Access> {
  const base_url = await serverAddress(url);
  const found = token === undefined || token === "" ? await askSecret(`Token for ${base_url}`, "--token") : token;
  return new Access(base_url, checkToken(found));
}

async function linked(link: string): Promise<Access> {
  const { logIn } = await import("../node.js");
  const [base_url, made] = await logIn(link);
  return new Access(base_url, made.token);
}

export async function logout(given: Given): Promise<void> {
  const { configPath, deleteConfig } = await import("../node.js");
  const gone = await local(configPath(), () => deleteConfig());
  if (given.json) printJson({ logged_out: gone });
  else print(gone ? "logged out" : "there was no log-in");
  warnOfEnvironment("it is still used");
}

/** What was given, else the environment's, the last log-in's, or this computer's server. */
export async function serverAddress(given: string | undefined): Promise<string> {
  const { findAccess, localUrl } = await import("../node.js");
  const named = [given, process.env["EVERFORGE_URL"]].find((url) => url !== undefined && url !== "");
  if (named !== undefined) return checkUrl(named);
  try {
    return findAccess().base_url;
  } catch (error) {
    if (!(error instanceof ConfigurationBad)) throw error;
    const url = localUrl();
    if (url === null) throw new ConfigurationBad(sentence("no_server_given"));
    return url;
  }
}

/** Tried first. The account's name. */
export async function keep(access: Access): Promise<string> {
  const { configPath, writeConfig } = await import("../node.js");
  const account = await connected(async (server) => {
    try {
      return await server.whoami();
    } catch (error) {
      if (error instanceof Unauthenticated) error.message = sentence("token_unknown_login", { url: access.base_url });
      throw error;
    }
  }, { token: access.token, base_url: access.base_url });
  await local(configPath(), () => writeConfig(access));
  warnOfEnvironment("it goes before this log-in");
  return account;
}

function warnOfEnvironment(what: string): void {
  if (process.env["EVERFORGE_TOKEN"]) say(`everforge: EVERFORGE_TOKEN is set: ${what}`);
}
