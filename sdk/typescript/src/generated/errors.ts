// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.

import { EverforgeError } from "../error.js";
import type { Retry } from "./api.js";

export { EverforgeError } from "../error.js";

export class Refused extends EverforgeError {
  static override readonly code: string = "Refused";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

export class InvalidInput extends Refused {
  static override readonly code: string = "InvalidInput";
  static override readonly httpStatus: number = 400;
  static override readonly retry: Retry = "never";
}

/** What was announced did not arrive in time. */
export class TooSlow extends Refused {
  static override readonly code: string = "TooSlow";
  static override readonly httpStatus: number = 408;
  static override readonly retry: Retry = "later";
}

/** None of the bytes asked for are there. */
export class RangeInvalid extends Refused {
  static override readonly code: string = "RangeInvalid";
  static override readonly httpStatus: number = 416;
  static override readonly retry: Retry = "never";
}

export class RouteNotFound extends Refused {
  static override readonly code: string = "RouteNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

/** It was asked for under a name that is not the server's: by somebody else's page, perhaps. */
export class HostUnknown extends Refused {
  static override readonly code: string = "HostUnknown";
  static override readonly httpStatus: number = 421;
  static override readonly retry: Retry = "never";
}

export class MethodNotAllowed extends Refused {
  static override readonly code: string = "MethodNotAllowed";
  static override readonly httpStatus: number = 405;
  static override readonly retry: Retry = "never";
}

export class TooManyStreams extends Refused {
  static override readonly code: string = "TooManyStreams";
  static override readonly httpStatus: number = 429;
  static override readonly retry: Retry = "later";
}

/** The server is going down; another one may be there in a moment. */
export class Stopping extends Refused {
  static override readonly code: string = "Stopping";
  static override readonly httpStatus: number = 503;
  static override readonly retry: Retry = "later";
}

export class MachineNotFound extends Refused {
  static override readonly code: string = "MachineNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class InstructionNotFound extends Refused {
  static override readonly code: string = "InstructionNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class SnapshotNotFound extends Refused {
  static override readonly code: string = "SnapshotNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class ImageNotFound extends Refused {
  static override readonly code: string = "ImageNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

/** An image could not be made, and none was changed; the message says which step failed and what to do. */
export class ImageBuildFailed extends Refused {
  static override readonly code: string = "ImageBuildFailed";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

export class NameTaken extends Refused {
  static override readonly code: string = "NameTaken";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

/** No point was kept there; `details["nearest"]` names the ones that were. */
export class PointNotKept extends Refused {
  static override readonly code: string = "PointNotKept";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

/** An idempotency key came again with another request. */
export class KeyReused extends Refused {
  static override readonly code: string = "KeyReused";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

/** The machine's memory is gone; `details["points"]` names what it can be rolled back to. */
export class MachineBroken extends Refused {
  static override readonly code: string = "MachineBroken";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

/** The lifecycle table has no such arrow. */
export class WrongState extends Refused {
  static override readonly code: string = "WrongState";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

/** The guest in the machine's memory is older than what was asked of it. A reset brings a new one. */
export class GuestTooOld extends Refused {
  static override readonly code: string = "GuestTooOld";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

export class FileNotFound extends Refused {
  static override readonly code: string = "FileNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class NotAFile extends Refused {
  static override readonly code: string = "NotAFile";
  static override readonly httpStatus: number = 400;
  static override readonly retry: Retry = "never";
}

export class NotAFolder extends Refused {
  static override readonly code: string = "NotAFolder";
  static override readonly httpStatus: number = 400;
  static override readonly retry: Retry = "never";
}

export class FolderNotEmpty extends Refused {
  static override readonly code: string = "FolderNotEmpty";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

/** The machine's user may not. */
export class FileRefused extends Refused {
  static override readonly code: string = "FileRefused";
  static override readonly httpStatus: number = 403;
  static override readonly retry: Retry = "never";
}

export class TooLarge extends Refused {
  static override readonly code: string = "TooLarge";
  static override readonly httpStatus: number = 413;
  static override readonly retry: Retry = "never";
}

/** Damaged, or with something in it that must not be unpacked. Nothing was. */
export class ArchiveRefused extends Refused {
  static override readonly code: string = "ArchiveRefused";
  static override readonly httpStatus: number = 400;
  static override readonly retry: Retry = "never";
}

export class QueueFull extends Refused {
  static override readonly code: string = "QueueFull";
  static override readonly httpStatus: number = 429;
  static override readonly retry: Retry = "later";
}

export class NoCapacity extends Refused {
  static override readonly code: string = "NoCapacity";
  static override readonly httpStatus: number = 429;
  static override readonly retry: Retry = "later";
}

/** The account has as much as it may have; `details["limit"]` says of what. */
export class QuotaExceeded extends NoCapacity {
  static override readonly code: string = "QuotaExceeded";
  static override readonly httpStatus: number = 429;
  static override readonly retry: Retry = "later";
}

/** No token, or none that is good: which of the ways it is bad is not told. */
export class Unauthenticated extends Refused {
  static override readonly code: string = "Unauthenticated";
  static override readonly httpStatus: number = 401;
  static override readonly retry: Retry = "never";
}

/** The token is good, but may not do this. */
export class Forbidden extends Refused {
  static override readonly code: string = "Forbidden";
  static override readonly httpStatus: number = 403;
  static override readonly retry: Retry = "never";
}

/** Too often, or too many of them; `details["retry_after_seconds"]` says when to come again, where time helps. */
export class TooMany extends Refused {
  static override readonly code: string = "TooMany";
  static override readonly httpStatus: number = 429;
  static override readonly retry: Retry = "later";
}

export class AccountNameAlreadyExists extends Refused {
  static override readonly code: string = "AccountNameAlreadyExists";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

export class EmailAlreadyExists extends Refused {
  static override readonly code: string = "EmailAlreadyExists";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

export class SignupClosed extends Refused {
  static override readonly code: string = "SignupClosed";
  static override readonly httpStatus: number = 403;
  static override readonly retry: Retry = "never";
}

/** Unknown, used, too old, or for somebody else. */
export class InvitationInvalid extends Refused {
  static override readonly code: string = "InvitationInvalid";
  static override readonly httpStatus: number = 403;
  static override readonly retry: Retry = "never";
}

/** A log-in link that was used already, or is too old. */
export class LinkInvalid extends Refused {
  static override readonly code: string = "LinkInvalid";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

/** What had to be mailed could not be, so nothing was done. */
export class MailFailed extends Refused {
  static override readonly code: string = "MailFailed";
  static override readonly httpStatus: number = 503;
  static override readonly retry: Retry = "later";
}

export class TokenNotFound extends Refused {
  static override readonly code: string = "TokenNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class SecretNotFound extends Refused {
  static override readonly code: string = "SecretNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class AccountNotFound extends Refused {
  static override readonly code: string = "AccountNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class WebhookNotFound extends Refused {
  static override readonly code: string = "WebhookNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

export class DeliveryNotFound extends Refused {
  static override readonly code: string = "DeliveryNotFound";
  static override readonly httpStatus: number = 404;
  static override readonly retry: Retry = "never";
}

/** What a webhook points to did not take it; the message says why. */
export class WebhookFailed extends Refused {
  static override readonly code: string = "WebhookFailed";
  static override readonly httpStatus: number = 502;
  static override readonly retry: Retry = "later";
}

/** Another server owns the data folder. */
export class DataFolderBusy extends Refused {
  static override readonly code: string = "DataFolderBusy";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "never";
}

export class MachineFailed extends EverforgeError {
  static override readonly code: string = "MachineFailed";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

export class StartFailed extends MachineFailed {
  static override readonly code: string = "StartFailed";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** The save did not become durable; the machine stays awake. */
export class SaveFailed extends MachineFailed {
  static override readonly code: string = "SaveFailed";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "later";
}

export class DiskFull extends SaveFailed {
  static override readonly code: string = "DiskFull";
  static override readonly httpStatus: number = 507;
  static override readonly retry: Retry = "later";
}

/** The machine is still asleep, its snapshot untouched. */
export class WakeFailed extends MachineFailed {
  static override readonly code: string = "WakeFailed";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "later";
}

/** A hash, a size or a missing file; found before anything ran. */
export class SnapshotDamaged extends MachineFailed {
  static override readonly code: string = "SnapshotDamaged";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** A snapshot of another engine build, image or processor; found before anything ran. */
export class SnapshotForeign extends MachineFailed {
  static override readonly code: string = "SnapshotForeign";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** The files of an image are no longer those it was built from. */
export class ImageDamaged extends MachineFailed {
  static override readonly code: string = "ImageDamaged";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

export class SandboxLost extends MachineFailed {
  static override readonly code: string = "SandboxLost";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** A file or folder that was on its way is not whole; the message says why. What was sent to the machine has left nothing there. */
export class TransferCut extends MachineFailed {
  static override readonly code: string = "TransferCut";
  static override readonly httpStatus: number = 409;
  static override readonly retry: Retry = "now";
}

/** The database cannot be read, or is from another version; nothing was changed. The message says what to do. */
export class StoreDamaged extends MachineFailed {
  static override readonly code: string = "StoreDamaged";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** The engine cannot run on this computer; the message says why and what to do. */
export class EngineUnfit extends MachineFailed {
  static override readonly code: string = "EngineUnfit";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** `details["position"]` is the last tape position seen. */
export class Uncertain extends EverforgeError {
  static override readonly code: string = "Uncertain";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "now";
}

export class ProtocolError extends EverforgeError {
  static override readonly code: string = "ProtocolError";
  static override readonly httpStatus: number = 400;
  static override readonly retry: Retry = "never";
}

/** Nobody sends it: a client says it to the program that it is part of. */
export class ClientError extends EverforgeError {
  static override readonly code: string = "ClientError";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** No server answers there; nothing happened. */
export class Unreachable extends ClientError {
  static override readonly code: string = "Unreachable";
  static override readonly httpStatus: number = 503;
  static override readonly retry: Retry = "later";
}

/** No server or no token is known here, or a file that names them is not as it should be; the message says what to do. */
export class ConfigurationBad extends ClientError {
  static override readonly code: string = "ConfigurationBad";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** Nothing names a server: none runs on this computer, and none was given. */
export class ServerUnknown extends ConfigurationBad {
  static override readonly code: string = "ServerUnknown";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** Client and server do not know the same things: one of them is older. Or what answers there is no server of ours. */
export class VersionMismatch extends ClientError {
  static override readonly code: string = "VersionMismatch";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** The instruction did not end within the time the caller had for it. It goes on. */
export class StillRunning extends ClientError {
  static override readonly code: string = "StillRunning";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "later";
}

/** What `raise_for_error` makes of a result that is none; `details["result"]` is the whole of it. */
export class InstructionFailed extends ClientError {
  static override readonly code: string = "InstructionFailed";
  static override readonly httpStatus: number = 500;
  static override readonly retry: Retry = "never";
}

/** By the code that the wire has for them. */
export const KNOWN: Readonly<Record<string, typeof EverforgeError>> = {
  Internal: EverforgeError,
  Refused: Refused,
  InvalidInput: InvalidInput,
  TooSlow: TooSlow,
  RangeInvalid: RangeInvalid,
  RouteNotFound: RouteNotFound,
  HostUnknown: HostUnknown,
  MethodNotAllowed: MethodNotAllowed,
  TooManyStreams: TooManyStreams,
  Stopping: Stopping,
  MachineNotFound: MachineNotFound,
  InstructionNotFound: InstructionNotFound,
  SnapshotNotFound: SnapshotNotFound,
  ImageNotFound: ImageNotFound,
  ImageBuildFailed: ImageBuildFailed,
  NameTaken: NameTaken,
  PointNotKept: PointNotKept,
  KeyReused: KeyReused,
  MachineBroken: MachineBroken,
  WrongState: WrongState,
  GuestTooOld: GuestTooOld,
  FileNotFound: FileNotFound,
  NotAFile: NotAFile,
  NotAFolder: NotAFolder,
  FolderNotEmpty: FolderNotEmpty,
  FileRefused: FileRefused,
  TooLarge: TooLarge,
  ArchiveRefused: ArchiveRefused,
  QueueFull: QueueFull,
  NoCapacity: NoCapacity,
  QuotaExceeded: QuotaExceeded,
  Unauthenticated: Unauthenticated,
  Forbidden: Forbidden,
  TooMany: TooMany,
  AccountNameAlreadyExists: AccountNameAlreadyExists,
  EmailAlreadyExists: EmailAlreadyExists,
  SignupClosed: SignupClosed,
  InvitationInvalid: InvitationInvalid,
  LinkInvalid: LinkInvalid,
  MailFailed: MailFailed,
  TokenNotFound: TokenNotFound,
  SecretNotFound: SecretNotFound,
  AccountNotFound: AccountNotFound,
  WebhookNotFound: WebhookNotFound,
  DeliveryNotFound: DeliveryNotFound,
  WebhookFailed: WebhookFailed,
  DataFolderBusy: DataFolderBusy,
  MachineFailed: MachineFailed,
  StartFailed: StartFailed,
  SaveFailed: SaveFailed,
  DiskFull: DiskFull,
  WakeFailed: WakeFailed,
  SnapshotDamaged: SnapshotDamaged,
  SnapshotForeign: SnapshotForeign,
  ImageDamaged: ImageDamaged,
  SandboxLost: SandboxLost,
  TransferCut: TransferCut,
  StoreDamaged: StoreDamaged,
  EngineUnfit: EngineUnfit,
  Uncertain: Uncertain,
  ProtocolError: ProtocolError,
  ClientError: ClientError,
  Unreachable: Unreachable,
  ConfigurationBad: ConfigurationBad,
  ServerUnknown: ServerUnknown,
  VersionMismatch: VersionMismatch,
  StillRunning: StillRunning,
  InstructionFailed: InstructionFailed,
};
