"""Instructions: run, looked at, interrupted, completed while they are typed; and answers to the functions that they call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..events import EndKind
from .base import Request

InstructionState = Literal["queued", "running", "waiting", "ended"]  # waiting: for an answer of the client's program


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionText(Request):
    code: str
    timeout_seconds: float | None = None
    env: dict[str, str] | None = None
    functions: list[str] | None = None  # of the client's program, that the code may call


@dataclass(frozen=True, slots=True, kw_only=True)
class Exec(Request):
    instruction: InstructionText
    interrupt: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    instruction_seq: int
    interrupted: bool
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of `value` and `error` one is absent: `value` is there, and may be null, when `end` is "value"."""

    runtime_ms: int
    end: EndKind
    value: str | None = None
    data: dict[str, Any] | None = None
    error: str | None = None
    traceback: str | None = None
    note: str | None = None
    retry: Literal["never", "later", "now"] | None = None
    displays: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionResult:
    instruction_id: int
    instruction_seq: int
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    instruction_seq: int
    code: str
    timeout_seconds: float
    state: InstructionState
    accepted_at: str
    position: int  # of its acceptance
    result: Result | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionList:
    instructions: list[Instruction]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt(Request):
    pending: bool | None = None  # those that wait, too
    instruction: int | None = None  # this one alone, running or waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(Request):
    code: str
    cursor: int | None = None  # characters before it; None: at the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    matches: list[str]
    start: int  # what they take the place of
    end: int
    busy: bool  # an instruction runs: nobody was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Request):
    """What a host function returned, or the message of what it raised."""

    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    answered: bool
