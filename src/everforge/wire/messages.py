"""What a keeper and a guest say to each other, as typed messages with JSON bodies. No I/O.

`decode_from_guest` takes bytes that a hostile program may have written: it gives a message or raises ProtocolError, never anything else.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, cast

from .bodies import OLD_WEIGHT_BYTES_MAX, WEIGHT_BYTES_MAX, parse
from .errors import ProtocolError
from .frames import GUEST_RECORD_BYTES_MAX, HEADER, MESSAGE_BYTES_MAX, RECORD_BYTES_MAX
from .shapes import INTEGER_MAX, Range, field_checks

# Guests live in snapshots for as long as their machines, so a server talks with older ones than its own. A new field or kind needs no new number
# where an older guest may leave it out; a server that counts on it looks at the number in the guest's hello.
PROTOCOL = 3  # 2: environment and functions of one instruction, files, completion; 3: the egress door
PROTOCOL_OLDEST = 1  # that this server still understands

COUNT_MAX = 2**53  # every JSON reader holds it exactly, and what is added to it still fits in a SQL integer
Count = Annotated[int, Range(0, COUNT_MAX)]  # of records, instructions, bytes, milliseconds
Nanoseconds = Annotated[int, Range(0, INTEGER_MAX)]  # since 1970
Octet = Annotated[int, Range(0, 255)]
Stream = Literal["stdout", "stderr"]
GuestEnd = Literal["value", "error", "interrupted", "died"]

# Calls of functions of the client's program. Both sides keep these limits; each call and each answer is an entry of the tape.
OUT_OF_MEMORY = "out of memory: "  # so begins what a guest says of processes that it had to end, in a note or as the cause of an interpreter's death
CALLS_MAX = 10_000  # by one instruction
CALLS_OPEN_MAX = 16  # waiting for their answers at once: one for each thread that calls
CALL_BYTES_MAX = 1024 * 1024  # of arguments, or of an answer, as JSON
CALLS_BYTES_MAX = 32 * 1024 * 1024  # of calls that wait, together, and of answers that the code has not taken yet, together
CALLS_TOTAL_BYTES_MAX = 128 * 1024 * 1024  # of the arguments of all calls by one instruction


@dataclass(frozen=True, slots=True)
class GuestMessage:
    kind: ClassVar[int]
    control: ClassVar[bool] = False  # control messages carry number 0: never kept, never resent
    body_bytes_max: ClassVar[int] = 64 * 1024  # what an honest writer stays well below
    sparse: ClassVar[tuple[str, ...]] = ()  # fields that are left out where they are empty: seldom used, in messages that are sent often


@dataclass(frozen=True, slots=True)
class FileMessage(GuestMessage):
    """Raw bytes instead of JSON: see wire.files."""

    control = True
    errand: Count
    verb: Octet
    number: Count
    body: bytes


FILE_HEAD = struct.Struct(">QBQ")  # errand, verb, number


# --- keeper to guest ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attach(GuestMessage):
    """First thing on every connection. A higher epoch than the guest's opens a new one: both counters start again at 0."""

    kind = 1
    control = True
    nonce: str  # hex of NONCE_BYTES; comes back in the marker
    epoch: Count
    have: Count  # last record number from the guest that is on the tape


@dataclass(frozen=True, slots=True)
class Ack(GuestMessage):
    kind = 2
    control = True
    upto: Count


@dataclass(frozen=True, slots=True)
class Setup(GuestMessage):
    """Before the first `go` of a new machine, fork or rollback: environment and limits of everything of the user's. Also changes them live."""

    kind = 3
    body_bytes_max = MESSAGE_BYTES_MAX
    sparse = ("files",)
    env: dict[str, str] = field(default_factory=dict[str, str])
    limits: dict[str, int] = field(default_factory=dict[str, int])  # names of guest.limits.GuestLimits
    files: dict[str, str] = field(default_factory=dict[str, str])  # names of guest.etc.PLACES: what a machine must know of the world outside


@dataclass(frozen=True, slots=True)
class Run(GuestMessage):
    kind = 4
    body_bytes_max = MESSAGE_BYTES_MAX
    sparse = ("env", "functions")
    instruction: Count
    code: str
    env: dict[str, str] = field(default_factory=dict[str, str])  # for this instruction alone, and what it starts
    functions: list[str] = field(default_factory=list[str])  # of the client's program, that it may call


@dataclass(frozen=True, slots=True)
class Interrupt(GuestMessage):
    """KeyboardInterrupt in the running instruction; one that is over already is left alone."""

    kind = 5
    instruction: Count


@dataclass(frozen=True, slots=True)
class Kill(GuestMessage):
    """Ends the interpreter that runs this instruction; files survive, variables do not."""

    kind = 6
    instruction: Count


@dataclass(frozen=True, slots=True)
class Freeze(GuestMessage):
    """Flush, stop every process of the user's, answer `frozen`, then stay silent until `go`; or answer `cannot freeze`, and all go on at once."""

    kind = 7
    token: Count


@dataclass(frozen=True, slots=True)
class Go(GuestMessage):
    """Let the user's processes run (again). Entropy is given to forks and new machines only; a wake keeps its generators."""

    kind = 8
    time_ns: Nanoseconds
    entropy: str | None = None


@dataclass(frozen=True, slots=True)
class FileAsk(FileMessage):
    kind = 9
    body_bytes_max = RECORD_BYTES_MAX - HEADER.size


@dataclass(frozen=True, slots=True)
class Complete(GuestMessage):
    """What could stand at this place of this code, by what the interpreter knows? Answered `completed`, soon."""

    kind = 10
    body_bytes_max = MESSAGE_BYTES_MAX
    token: Count
    code: str
    cursor: Count  # in characters


@dataclass(frozen=True, slots=True)
class Answer(GuestMessage):
    """What a function of the client's program returned, or why it failed. A second one for the same call is nothing."""

    kind = 11
    body_bytes_max = CALL_BYTES_MAX + 64 * 1024
    instruction: Count
    call: Count
    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class OpenDoor(GuestMessage):
    """The egress door expects a porter: what it sends over the third descriptor begins with a marker that carries this nonce."""

    kind = 12
    control = True
    nonce: str  # hex of NONCE_BYTES


# --- guest to keeper ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello(GuestMessage):
    """Answer to `attach`, right behind the marker. The numbers are those of the epoch that the guest was in *before* the attach."""

    kind = 65
    control = True
    sparse = ("calls",)
    protocol: Count
    epoch: Count
    sent: Count
    received: Count
    frozen: bool
    running: Count | None  # the instruction that runs now
    running_ms: Count  # for how long; 0 when none runs
    last: Count | None  # the last instruction that was taken in this epoch
    interpreter: Count  # how many interpreters this machine has had
    calls: list[Count] = field(default_factory=list[int])  # of the running instruction, that the guest has no answer to


@dataclass(frozen=True, slots=True)
class Outputs(GuestMessage):
    """Lines without their newline, in order. Only the last may be `partial`: its newline has not come (yet)."""

    kind = 66
    body_bytes_max = 3 * 1024 * 1024  # what a guest reads from a pipe at once (256 KiB) and a long line, each byte spelled as \ufffd, and some
    instruction: Count | None  # the one running when it came; None between instructions
    stream: Stream
    lines: list[str]
    partial: bool = False
    origin: Count | None = None  # the instruction that started the thread which wrote it, where that is another one


@dataclass(frozen=True, slots=True)
class Display(GuestMessage):
    """Rich output: MIME type to text (base64 for binary types) or JSON."""

    kind = 67
    body_bytes_max = MESSAGE_BYTES_MAX
    instruction: Count | None
    data: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class End(GuestMessage):
    """The one end of an instruction. `died`: the interpreter is gone and `error_message` says how; the next instruction gets a new one."""

    kind = 68
    body_bytes_max = MESSAGE_BYTES_MAX
    instruction: Count
    end: GuestEnd
    runtime_us: Count
    value: str | None = None  # repr of the last expression
    data: dict[str, Any] | None = None  # its MIME bundle, when there is more than text
    error_name: str | None = None
    error_message: str | None = None
    traceback: str | None = None
    note: str | None = None  # what else the caller should know: a new interpreter, output dropped
    dropped_bytes: Count = 0  # output past the limit


@dataclass(frozen=True, slots=True)
class Frozen(GuestMessage):
    kind = 69
    token: Count


@dataclass(frozen=True, slots=True)
class Thawed(GuestMessage):
    """Answer to `go`: the user's processes run."""

    kind = 70
    drift_ns: int = 0  # guest clock minus the time that `go` told
    reseeded: bool = True  # False: the interpreter is busy, and takes the entropy of `go` before the next instruction instead


@dataclass(frozen=True, slots=True)
class CannotFreeze(GuestMessage):
    """The other answer to `freeze`: some process would not stand still. Those that did go on."""

    kind = 71
    token: Count
    why: str


@dataclass(frozen=True, slots=True)
class FileTold(FileMessage):
    kind = 72
    body_bytes_max = GUEST_RECORD_BYTES_MAX - HEADER.size


@dataclass(frozen=True, slots=True)
class Completed(GuestMessage):
    kind = 73
    control = True
    token: Count
    matches: list[str] = field(default_factory=list[str])
    start: Count = 0  # what of the code each of them replaces
    end: Count = 0
    busy: bool = False  # the interpreter was: it was not asked, or did not answer in time


@dataclass(frozen=True, slots=True)
class Call(GuestMessage):
    """The code has called a function of the client's program and waits. Numbers grow within an instruction; some may be left out."""

    kind = 74
    body_bytes_max = CALL_BYTES_MAX + 64 * 1024
    instruction: Count
    call: Count
    function: str
    args: list[Any] = field(default_factory=list[Any])
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class CallDropped(GuestMessage):
    """Nobody waits for its answer any more: whoever did was interrupted."""

    kind = 75
    instruction: Count
    call: Count


@dataclass(frozen=True, slots=True)
class Knock(GuestMessage):
    """A program in the machine wants to connect to the outside. Answered `open door`."""

    kind = 76
    control = True


FROM_KEEPER: dict[int, type[GuestMessage]] = {
    m.kind: m for m in (Attach, Ack, Setup, Run, Interrupt, Kill, Freeze, Go, FileAsk, Complete, Answer, OpenDoor)
}
FROM_GUEST: dict[int, type[GuestMessage]] = {
    m.kind: m for m in (Hello, Outputs, Display, End, Frozen, Thawed, CannotFreeze, FileTold, Completed, Call, CallDropped, Knock)
}


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def encode(message: GuestMessage) -> bytes:
    if isinstance(message, FileMessage):
        return FILE_HEAD.pack(message.errand, message.verb, message.number) + message.body
    told = {name: getattr(message, name) for name in field_checks(type(message))}
    for name in message.sparse:
        if not told[name]:
            del told[name]
    return _ENCODER.encode(told).encode("ascii")


def decode_from_guest(kind: int, body: bytes) -> GuestMessage:
    """For a keeper whose guest may be years older."""
    return _decode(_from_guest(kind), body, exact=True, weight_bytes_max=OLD_WEIGHT_BYTES_MAX)


def decode_from_interpreter(kind: int, body: bytes) -> GuestMessage:
    """For the guest itself, before it passes on what the user's process has said."""
    return _decode(_from_guest(kind), body, exact=True)


def _from_guest(kind: int) -> type[GuestMessage]:
    cls = FROM_GUEST.get(kind)
    if cls is None:
        raise ProtocolError(f"there is no message of kind {kind}")
    return cls


def decode_from_keeper(kind: int, body: bytes) -> GuestMessage | None:
    """For a guest whose keeper may be years younger: fields that it does not know are left out, and kinds that it does not know are None."""
    cls = FROM_KEEPER.get(kind)
    return None if cls is None else _decode(cls, body, exact=False)


def _decode(cls: type[GuestMessage], body: bytes, *, exact: bool, weight_bytes_max: int = WEIGHT_BYTES_MAX) -> GuestMessage:
    if len(body) > cls.body_bytes_max:
        raise ProtocolError(f"a {cls.__name__} message of {len(body)} bytes is over the limit of {cls.body_bytes_max}")
    if issubclass(cls, FileMessage):
        return _decode_file(cls, body)
    try:
        found = parse(body, weight_bytes_max)
    except ValueError as e:
        raise ProtocolError(f"the body of a {cls.__name__} message is not JSON, or not such as can be kept") from e
    if not isinstance(found, dict):
        raise ProtocolError(f"the body of a {cls.__name__} message is not an object")
    values, checks = cast(dict[str, Any], found), field_checks(cls)
    if not exact:
        values = {name: value for name, value in values.items() if name in checks}
    for name, value in values.items():
        check = checks.get(name)
        if check is None:
            raise ProtocolError(f"a {cls.__name__} message has a field that it should not have")
        if not check(value):
            raise ProtocolError(f"field {name} of a {cls.__name__} message is not what it should be")
    try:
        return cls(**values)
    except TypeError as e:
        raise ProtocolError(f"a {cls.__name__} message lacks a field") from e


def _decode_file(cls: type[FileMessage], body: bytes) -> FileMessage:
    if len(body) < FILE_HEAD.size:
        raise ProtocolError(f"a {cls.__name__} message is shorter than its head")
    errand, verb, number = FILE_HEAD.unpack_from(body)
    if errand > COUNT_MAX or number > COUNT_MAX:
        raise ProtocolError(f"a number of a {cls.__name__} message is too large")
    return cls(errand, verb, number, body[FILE_HEAD.size :])
