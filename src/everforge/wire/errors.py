"""The one error tree.

Four branches, by what the caller must know: *refused* (nothing happened), *machine failed* (and the state it is left in), *uncertain* (we do
not know; carries the last position seen), *protocol* (someone broke it). A fifth is what a client alone can say. The user's own exception is a
result, never one of these.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Retry = Literal["never", "later", "now"]


class EverforgeError(Exception):
    """Every error of ours. `code` is stable and the same in all languages; the message says what happened, to what, and what to do."""

    code: ClassVar[str] = "Internal"
    http_status: ClassVar[int] = 500
    retry: ClassVar[Retry] = "never"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.request_id: str | None = None  # in a client: what the server calls the request, to be found in its log
        self.retry_after_seconds = 0.0  # in a client: no sooner than this


# --- what you asked cannot be done, and nothing happened ---------------------------------------------------------------------------


class Refused(EverforgeError):
    code = "Refused"
    http_status = 409


class InvalidInput(Refused):
    code = "InvalidInput"
    http_status = 400


class TooSlow(Refused):
    """What was announced did not arrive in time."""

    code = "TooSlow"
    http_status = 408
    retry = "later"


class RangeInvalid(Refused):
    """None of the bytes asked for are there."""

    code = "RangeInvalid"
    http_status = 416


class RouteNotFound(Refused):
    code = "RouteNotFound"
    http_status = 404


class HostUnknown(Refused):
    """It was asked for under a name that is not the server's: by somebody else's page, perhaps."""

    code = "HostUnknown"
    http_status = 421


class MethodNotAllowed(Refused):
    code = "MethodNotAllowed"
    http_status = 405


class TooManyStreams(Refused):
    code = "TooManyStreams"
    http_status = 429
    retry = "later"


class Stopping(Refused):
    """The server is going down; another one may be there in a moment."""

    code = "Stopping"
    http_status = 503
    retry = "later"


class MachineNotFound(Refused):
    code = "MachineNotFound"
    http_status = 404


class InstructionNotFound(Refused):
    code = "InstructionNotFound"
    http_status = 404


class SnapshotNotFound(Refused):
    code = "SnapshotNotFound"
    http_status = 404


class ImageNotFound(Refused):
    code = "ImageNotFound"
    http_status = 404


class ImageBuildFailed(Refused):
    """An image could not be made, and none was changed; the message says which step failed and what to do."""

    code = "ImageBuildFailed"
    http_status = 500


class NameTaken(Refused):
    code = "NameTaken"


class PointNotKept(Refused):
    """No point was kept there; `details["nearest"]` names the ones that were."""

    code = "PointNotKept"


class KeyReused(Refused):
    """An idempotency key came again with another request."""

    code = "KeyReused"


class MachineBroken(Refused):
    """The machine's memory is gone; `details["points"]` names what it can be rolled back to."""

    code = "MachineBroken"


class WrongState(Refused):
    """The lifecycle table has no such arrow."""

    code = "WrongState"


class GuestTooOld(Refused):
    """The guest in the machine's memory is older than what was asked of it. A reset brings a new one."""

    code = "GuestTooOld"


class FileNotFound(Refused):
    code = "FileNotFound"
    http_status = 404


class NotAFile(Refused):
    code = "NotAFile"
    http_status = 400


class NotAFolder(Refused):
    code = "NotAFolder"
    http_status = 400


class FolderNotEmpty(Refused):
    code = "FolderNotEmpty"


class FileRefused(Refused):
    """The machine's user may not."""

    code = "FileRefused"
    http_status = 403


class TooLarge(Refused):
    code = "TooLarge"
    http_status = 413


class ArchiveRefused(Refused):
    """Damaged, or with something in it that must not be unpacked. Nothing was."""

    code = "ArchiveRefused"
    http_status = 400


class QueueFull(Refused):
    code = "QueueFull"
    http_status = 429
    retry = "later"


class NoCapacity(Refused):
    code = "NoCapacity"
    http_status = 429
    retry = "later"


class QuotaExceeded(NoCapacity):
    """The account has as much as it may have; `details["limit"]` says of what."""

    code = "QuotaExceeded"


class Unauthenticated(Refused):
    """No token, or none that is good: which of the ways it is bad is not told."""

    code = "Unauthenticated"
    http_status = 401


class Forbidden(Refused):
    """The token is good, but may not do this."""

    code = "Forbidden"
    http_status = 403


class TooMany(Refused):
    """Too often, or too many of them; `details["retry_after_seconds"]` says when to come again, where time helps."""

    code = "TooMany"
    http_status = 429
    retry = "later"


class AccountNameAlreadyExists(Refused):
    code = "AccountNameAlreadyExists"


class EmailAlreadyExists(Refused):
    code = "EmailAlreadyExists"


class SignupClosed(Refused):
    code = "SignupClosed"
    http_status = 403


class InvitationInvalid(Refused):
    """Unknown, used, too old, or for somebody else."""

    code = "InvitationInvalid"
    http_status = 403


class LinkInvalid(Refused):
    """A log-in link that was used already, or is too old."""

    code = "LinkInvalid"
    http_status = 404


class MailFailed(Refused):
    """What had to be mailed could not be, so nothing was done."""

    code = "MailFailed"
    http_status = 503
    retry = "later"


class TokenNotFound(Refused):
    code = "TokenNotFound"
    http_status = 404


class SecretNotFound(Refused):
    code = "SecretNotFound"
    http_status = 404


class AccountNotFound(Refused):
    code = "AccountNotFound"
    http_status = 404


class WebhookNotFound(Refused):
    code = "WebhookNotFound"
    http_status = 404


class DeliveryNotFound(Refused):
    code = "DeliveryNotFound"
    http_status = 404


class WebhookFailed(Refused):
    """What a webhook points to did not take it; the message says why."""

    code = "WebhookFailed"
    http_status = 502
    retry = "later"


class DataFolderBusy(Refused):
    """Another server owns the data folder."""

    code = "DataFolderBusy"


# --- the machine could not, and the state it is left in ----------------------------------------------------------------------------


class MachineFailed(EverforgeError):
    code = "MachineFailed"
    http_status = 500


class StartFailed(MachineFailed):
    code = "StartFailed"


class SaveFailed(MachineFailed):
    """The save did not become durable; the machine stays awake."""

    code = "SaveFailed"
    retry = "later"


class DiskFull(SaveFailed):
    code = "DiskFull"
    http_status = 507


class WakeFailed(MachineFailed):
    """The machine is still asleep, its snapshot untouched."""

    code = "WakeFailed"
    retry = "later"


class SnapshotDamaged(MachineFailed):
    """A hash, a size or a missing file; found before anything ran."""

    code = "SnapshotDamaged"


class SnapshotForeign(MachineFailed):
    """A snapshot of another engine build, image or processor; found before anything ran."""

    code = "SnapshotForeign"


class ImageDamaged(MachineFailed):
    """The files of an image are no longer those it was built from."""

    code = "ImageDamaged"


class SandboxLost(MachineFailed):
    code = "SandboxLost"


class TransferCut(MachineFailed):
    """A file or folder that was on its way is not whole; the message says why. What was sent to the machine has left nothing there."""

    code = "TransferCut"
    http_status = 409
    retry = "now"


class StoreDamaged(MachineFailed):
    """The database cannot be read, or is from another version; nothing was changed. The message says what to do."""

    code = "StoreDamaged"


class EngineUnfit(MachineFailed):
    """The engine cannot run on this computer; the message says why and what to do."""

    code = "EngineUnfit"


# --- we do not know what happened --------------------------------------------------------------------------------------------------


class Uncertain(EverforgeError):
    """`details["position"]` is the last tape position seen."""

    code = "Uncertain"
    retry = "now"


# --- someone broke the protocol ----------------------------------------------------------------------------------------------------


class ProtocolError(EverforgeError):
    code = "ProtocolError"
    http_status = 400


# --- what only a client can meet ---------------------------------------------------------------------------------------------------


class ClientError(EverforgeError):
    """Nobody sends it: a client says it to the program that it is part of."""

    code = "ClientError"


class Unreachable(ClientError):
    """No server answers there; nothing happened."""

    code = "Unreachable"
    http_status = 503
    retry = "later"


class ConfigurationBad(ClientError):
    """No server or no token is known here, or a file that names them is not as it should be; the message says what to do."""

    code = "ConfigurationBad"


class ServerUnknown(ConfigurationBad):
    """Nothing names a server: none runs on this computer, and none was given."""

    code = "ServerUnknown"


class VersionMismatch(ClientError):
    """Client and server do not know the same things: one of them is older. Or what answers there is no server of ours."""

    code = "VersionMismatch"


class StillRunning(ClientError, TimeoutError):
    """The instruction did not end within the time the caller had for it. It goes on."""

    code = "StillRunning"
    retry = "later"


class InstructionFailed(ClientError):
    """What `raise_for_error` makes of a result that is none; `details["result"]` is the whole of it."""

    code = "InstructionFailed"
