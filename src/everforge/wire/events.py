"""Entries of a machine's tape. No I/O.

Every entry takes one position (an `Output` takes one for each of its lines), one growing integer per machine, never reused. Events are plain data
with a JSON body, so that the tape in any database, the stream to a client and the test's assertion all see the same thing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, NewType, Self

from .messages import Stream

Position = NewType("Position", int)
START = Position(-1)  # "after nothing": the first entry of a tape has position 0

EndKind = Literal["value", "error", "interrupted", "timed_out", "lost", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: ClassVar[str]
    position: Position = START  # given by the tape
    time: float = 0.0  # seconds since 1970, when the keeper wrote it
    epoch: int = 0  # with `frame`: which record of the guest this entry comes from; 0 where it is ours
    frame: int = 0

    @property
    def width(self) -> int:
        """How many positions it takes."""
        return 1

    def at(self, position: Position) -> Self:
        """The same entry at its place on the tape: `replace`, in half the time, since every entry passes here."""
        cls = type(self)
        copy = object.__new__(cls)
        for name in _NAMES[cls]:
            object.__setattr__(copy, name, getattr(self, name))
        object.__setattr__(copy, "position", position)
        return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Event):
    kind = "accepted"
    instruction: int
    code: str
    timeout_seconds: float
    key: str | None = None  # the client's idempotency key
    env: dict[str, str] = field(default_factory=dict[str, str])  # of this instruction alone
    functions: list[str] = field(default_factory=list[str])  # of the client's program, that it may call


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Event):
    kind = "output"
    instruction: int | None
    stream: Stream
    first_seq: int  # number of the first line within its instruction
    lines: list[str]
    partial: bool = False  # the last line's newline has not come
    origin: int | None = None

    @property
    def width(self) -> int:
        return len(self.lines)

    def after(self, position: Position) -> Output:
        """What of it lies after `position`."""
        skip = position - self.position + 1
        if skip <= 0:
            return self
        return replace(self, position=Position(position + 1), first_seq=self.first_seq + skip, lines=self.lines[skip:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Displayed(Event):
    kind = "displayed"
    instruction: int | None
    data: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """The one end of an instruction: its result."""

    kind = "ended"
    instruction: int
    end: EndKind
    runtime_ms: int = 0
    value: str | None = None
    data: dict[str, Any] | None = None
    error: str | None = None  # one line: type and message
    traceback: str | None = None
    note: str | None = None  # what survived, what was dropped, that a new interpreter began
    retry: Literal["never", "later", "now"] = "never"
    displays: int | None = None  # how many `Displayed` belong to it; None where only the tape knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Called(Event):
    """The code has called a function of the client's program, and waits for its answer."""

    kind = "called"
    instruction: int
    call: int  # its number within the instruction
    function: str
    args: list[Any] = field(default_factory=list[Any])
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Event):
    """The one answer to a call. One that its caller no longer waits for is answered with an error, so that nobody else does."""

    kind = "answered"
    instruction: int
    call: int
    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(Event):
    """Something happened to the machine itself: the lifecycle event's name, and what a reader needs to know of it."""

    kind = "moved"
    event: str
    residence: str
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Event):
    """Memory since a point is gone: everything executed after it has left no trace in the machine."""

    kind = "lost"
    since_position: Position
    first_instruction: int | None  # executed after the point, wholly or in part, and
    last_instruction: int | None  # None when none was
    snapshot: str | None  # where the machine is, or can be, back
    reason: str


KINDS: dict[str, type[Event]] = {cls.kind: cls for cls in (Accepted, Output, Displayed, Ended, Called, Answered, Moved, Lost)}
_NAMES = {cls: tuple(f.name for f in fields(cls)) for cls in KINDS.values()}
_COLUMNS = frozenset(f.name for f in fields(Event))  # stored in columns of their own, not in the body
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_BODY = {cls: tuple(f.name for f in fields(cls) if f.name not in _COLUMNS) for cls in KINDS.values()}


def body(event: Event) -> dict[str, Any]:
    """What it says, without its place on the tape."""
    return {name: getattr(event, name) for name in _BODY[type(event)]}


def encode_body(event: Event) -> str:
    """ASCII JSON: survives lone surrogates and NUL in any database."""
    return _ENCODER.encode(body(event))


def decode(kind: str, body: str, *, position: int, time: float, epoch: int, frame: int) -> Event:
    return KINDS[kind](position=Position(position), time=time, epoch=epoch, frame=frame, **json.loads(body))
