"""Snapshots, and going back to them."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Request


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
    discard: bool | None = None  # a machine that is awake is not saved first, and `undo` is null


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    snapshot: Snapshot
    undo: str | None
