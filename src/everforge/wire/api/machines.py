"""Machines: made, listed, changed, forked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .base import Request
from .egress import Egress

State = Literal["creating", "ready", "busy", "hibernating", "asleep", "waking", "broken", "deleted"]
When = Literal["idle", "each"]  # at each sleep, or after each instruction


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
    egress: Egress | None = None
    egress_allow: list[str] | None = None
    idle_seconds: float | None = None
    expires_at: str | None = None
    history: When | None = None
    durability: When | None = None
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
    egress: Egress  # what it may reach, and
    egress_allow: list[str]  # beyond that
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
    history: When | None = None
    durability: When | None = None
    egress: Egress | None = None
    egress_allow: list[str] | None = None  # in place of the rules that there are
    expires_at: str | None = None  # "never" clears it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(Request):
    names: list[str] | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    machine_name: str
    machine_names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(Request):
    discard: bool | None = None  # a machine that is awake is not saved first, and `undo` is null


@dataclass(frozen=True, slots=True, kw_only=True)
class WasReset:
    undo: str | None  # the snapshot that brings back what was before
