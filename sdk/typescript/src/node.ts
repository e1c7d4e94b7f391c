/** The whole SDK, and what only Node has: the files that say where the server is, and signing up. */

export * from "./index.js";
export { Access } from "./access.js";
export { configPath, deleteConfig, findAccess, localUrl, writeConfig } from "./node/config.js";
export { logIn, signUp } from "./signup.js";
