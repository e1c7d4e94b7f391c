/// <reference lib="esnext.disposable" preserve="true" />
/** The public names, the same in Node and in browsers. */

export { Audit, type AuditOptions, type AuditPageOptions, type VerifyOptions } from "./audit.js";
export { Chain, ChainBroken, GENESIS, Part, digestWith, hashOf } from "./chain.js";
export { Everforge, type EverforgeOptions, type MachinesOptions, type NewMachineOptions } from "./client.js";
export type { RequestOptions } from "./door.js";
export { Egress, EgressDefault, Secrets, type SecretOptions } from "./egress.js";
export { EverforgeError } from "./error.js";
export { ExactNumber, parseExactly } from "./exactjson.js";
export { Files, type FileContent, type Progress, type TransferOptions } from "./files.js";
export type { Functions, HostFunction } from "./functions.js";
export type * as api from "./generated/api.js";
export type { AuditEntry, AuditHead } from "./generated/api.js";
export type { Entry } from "./generated/entries.js";
export type * as entries from "./generated/entries.js";
export * as errors from "./generated/errors.js";
export { VERSION } from "./generated/version.js";
export { Instruction, type ExecOptions, type ResultOptions, type StreamOptions } from "./instruction.js";
export type { Listener } from "./listener.js";
export { Machine, type RunOptions, type TapeOptions } from "./machine.js";
export { Repl, type ReplRunOptions } from "./repl.js";
export { Display, Line, Result, mimeBundle, type Bundle } from "./results.js";
export { Accounts, Tokens } from "./tokens.js";
export { Webhooks } from "./webhooks.js";
