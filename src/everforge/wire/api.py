"""Bodies of requests and answers over HTTP: the one description of them. The server reads and documents them from here, the SDK takes its answers
apart with them. Plain dataclasses; no I/O.

Of a request, what is not given is None and means the server's default. An unknown field is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from .events import EndKind

State = Literal["creating", "ready", "busy", "hibernating", "asleep", "waking", "broken", "deleted"]
Scope = Literal["read", "exec", "manage"]
FileKind = Literal["file", "folder", "link", "other"]
ArchiveFormat = Literal["tar", "tar.gz", "zip"]
InstructionState = Literal["queued", "running", "waiting", "ended"]  # waiting: for an answer of the client's program


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What comes behind the `?`: text, read as the numbers and words that it spells."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


# --- machines ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef(Request):
    machine: str
    snapshot: str  # id or name


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMachine(Request):
    tags: dict[str, str] | None = None
    memory_mb: int | None = None
    name: str | None = None
    image: str | None = None
    cpus: float | None = None
    disk_mb: int | None = None
    processes: int | None = None
    env: dict[str, str] | None = None
    idle_seconds: float | None = None
    expires_at: str | None = None
    history: Literal["idle", "each"] | None = None
    durability: Literal["idle", "each"] | None = None
    metadata: dict[str, Any] | None = None
    from_snapshot: SnapshotRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCreated:
    machine_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMachine:
    name: str
    state: State
    created_at: str
    last_used_at: str
    expires_at: str | None
    tags: dict[str, str]
    metadata: dict[str, Any]
    memory_mb: int
    cpus: float
    disk_mb: int
    processes: int
    engine: str
    image: str
    idle_seconds: float
    history: str
    durability: str
    egress: str
    next_instruction: int
    pending_instructions: int
    error: str | None
    running: bool
    has_pending_instruction: bool
    has_pending_instructions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(ListedMachine):
    position: int  # the tape's last
    memory_bytes: int  # of the host, now
    disk_bytes: int  # its snapshots
    forked_from: str | None  # the name of the machine that it was forked from, while that is there


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMachines(Request):
    tags: dict[str, str] | None = None
    state: State | None = None
    name_prefix: str | None = None
    limit: int | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineList:
    machines: list[ListedMachine]
    next: str | None  # give it as `after` for the next page


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChange(Request):
    tags: dict[str, str] | None = None
    metadata: dict[str, Any] | None = None
    idle_seconds: float | None = None
    history: Literal["idle", "each"] | None = None
    durability: Literal["idle", "each"] | None = None
    expires_at: str | None = None  # "never" clears it


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(Request):
    names: list[str] | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    machine_name: str
    machine_names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt(Request):
    pending: bool | None = None  # those that wait, too
    instruction: int | None = None  # this one alone, running or waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WasReset:
    undo: str | None  # the snapshot that brings back what was before


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


# --- snapshots ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSnapshot(Request):
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    id: str
    name: str | None
    position: int
    instruction: int | None  # the last one whose effects it holds
    created_at: str
    reason: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotList:
    snapshots: list[Snapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback(Request):
    to: str | int | None = None  # a snapshot's id or name; or an instruction: the state after it; None: the newest snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    snapshot: Snapshot
    undo: str | None


# --- instructions ------------------------------------------------------------------------------------------------------------------


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
class Answer(Request):
    """What a host function returned, or the message of what it raised."""

    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    answered: bool


# --- tape --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    entries: list[dict[str, Any]]
    position: int  # give it as `after` to go on
    more: bool


# --- files -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    path: str
    kind: FileKind
    size_bytes: int
    modified_at: str
    mode: int
    target: str | None  # of a link


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList:
    path: str
    files: list[File]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    path: str
    files: int
    size_bytes: int


# --- identity ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Whoami:
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInUse:
    id: str
    name: str | None
    scopes: list[Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    account: str
    email: str | None
    owner: bool
    created_at: str
    token: TokenInUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountList:
    accounts: list[Account]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount(Request):
    account_name: str
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountCreated:
    account: str
    token: str  # shown once


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation(Request):
    email: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    invitation: str
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUp(Request):
    email: str
    account_name: str
    invitation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUp:
    account: str
    token: str | None  # shown once; None when it was mailed
    mailed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(Request):
    name: str | None = None
    scopes: list[Scope] | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    id: str
    name: str | None
    scopes: list[Scope]
    created_at: str
    last_used_at: str | None
    expires_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCreated(Token):
    token: str  # shown once


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenList:
    tokens: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInLink:
    url: str  # good for one log-in
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    account: str
    token: str  # shown once
    url: str  # of the server


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    machines: int
    awake: int
    asleep: int
    broken: int
    instructions: int
    runtime_ms: int
    disk_bytes: int


# --- the server --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    status: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    code: str
    message: str
    retry: Literal["never", "later", "now"]
    id: str | None = None
    details: dict[str, Any] = field(default_factory=dict[str, Any])
