"""Entries of the audit log, and the chain that they make: each one's hash covers the one before. No I/O: whoever has the entries can check them,
and need not take the server's word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

GENESIS = "0" * 64  # what the first entry has for the hash before it
PRUNED = "audit.prune"  # the action of an entry that stands for older ones which were let go
UNREADABLE = "audit.unreadable"  # of one that stands for an entry which could not be written down
DROPPED = "audit.dropped"  # and of one that stands for entries that there was no room for
HASHES_MAX = 100_000  # that a check keeps in mind: more than are let go under one anchor, which a test holds
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode  # made once: that takes longer than to use it
OK = "ok"  # the outcome of what was done; any other is the code of an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Who did what to which machine, from where, when, and what came of it."""

    time: str  # RFC 3339, to the millisecond
    action: str
    outcome: str = OK
    account: str | None = None  # id; its name may be another one's later
    account_name: str | None = None
    token: str | None = None  # the id, which is no secret
    machine: str | None = None
    address: str | None = None
    request: str | None = None  # its id, as in the server's log
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry(Seen):
    number: int  # from 1, without gaps
    previous: str  # the hash of the entry before
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """Where the chain ends: what was written last."""

    number: int
    hash: str


def moment(seconds: float) -> str:
    return from_ms(int(seconds * 1000))


def from_ms(ms: int) -> str:
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=16)  # of one second there are many
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def to_ms(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def hash_of(entry: Mapping[str, Any]) -> str:
    """SHA-256 of its canonical JSON: names in order, no spaces, ASCII; without the hash itself and what is null, so that a later version may have
    more fields."""
    covered = {name: value for name, value in entry.items() if name != "hash" and value is not None}
    return hashlib.sha256(canonical(covered).encode("ascii")).hexdigest()


def hash_found(entry: Mapping[str, Any]) -> str | None:
    """The same of whatever somebody gives for an entry; None where it is so that none was ever sealed."""
    try:
        return hash_of(entry)
    except (ValueError, TypeError, RecursionError):
        return None


def plain(seen: Seen) -> dict[str, Any]:
    return {f.name: getattr(seen, f.name) for f in fields(seen)}


def seal(seen: Seen, head: AuditHead) -> AuditEntry:
    """The next entry of a chain that ends so."""
    values: dict[str, Any] = plain(seen) | {"number": head.number + 1, "previous": head.hash}
    return AuditEntry(**values, hash=hash_of(values))


class ChainBroken(Exception):
    """`number` is the first entry that is not as it was written, or is not there."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"entry {number}: {reason}")
        self.number = number
        self.reason = reason


class Chain:
    """Takes entries one by one, in the order they come, and finds the first that does not fit."""

    def __init__(self, kept: AuditHead | None = None) -> None:
        """`kept` is the end of the log at some time before, from where nobody who can write the log could change it."""
        self._kept = kept
        self.count = 0
        self.head = AuditHead(number=0, hash=GENESIS)
        self._let_go = 0  # the last entry that one which is there says was let go
        self._hashes: dict[int, str] = {}  # of entries that a prune under way may name
        self._anchored = True
        self._compare(self.head)  # kept of a log that had no entry yet

    def add(self, entry: Mapping[str, Any]) -> None:
        """Raises ChainBroken."""
        number, previous = entry.get("number"), entry.get("previous")
        if type(number) is not int or not isinstance(previous, str):
            raise ChainBroken(self.head.number + 1, "what stands in its place is no entry")
        if not self.count:
            self._begin(number, previous)
        if number != self.head.number + 1:
            raise ChainBroken(self.head.number + 1, f"it is missing, or out of its place: {number} stands there")
        if previous != self.head.hash:
            raise ChainBroken(number, "it does not follow the entry before it")
        if (found := hash_found(entry)) != entry.get("hash") or found is None:
            raise ChainBroken(number, "it was changed: its hash is not that of what it says")
        self.head = AuditHead(number=number, hash=found)
        self.count += 1
        self._compare(self.head)
        if not self._anchored:
            if len(self._hashes) < HASHES_MAX:
                self._hashes[number] = found
            self._look_for_anchor(entry)

    def _compare(self, head: AuditHead) -> None:
        if self._kept is not None and head.number == self._kept.number:
            if head != self._kept:
                raise ChainBroken(head.number, "it is not the one that was kept: the log was written anew")
            self._kept = None

    def _begin(self, number: int, previous: str) -> None:
        if number == 1:
            return  # `previous` must then be GENESIS
        self.head = AuditHead(number=number - 1, hash=previous)
        self._hashes[number - 1] = previous
        self._anchored = False

    def _look_for_anchor(self, entry: Mapping[str, Any]) -> None:
        """A log that does not begin with 1 must say itself why, and name the hash that its first entry follows."""
        detail = entry.get("detail")
        if entry.get("action") == PRUNED and isinstance(detail, dict):
            through, hash = detail.get("through"), detail.get("hash")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            self._let_go = through if type(through) is int else 0  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(hash, str) and self._hashes.get(self._let_go) == hash:
                self._anchored = True
                self._hashes.clear()

    def end(self, head: AuditHead | None = None) -> None:
        """There are no more. `head` is where the log says that it ends. Raises ChainBroken."""
        if not self._anchored:
            raise ChainBroken(self._let_go + 1, "it is missing, and no entry says that it was let go")
        if head is not None and head.number > self.head.number:
            raise ChainBroken(self.head.number + 1, f"it is missing: the log says that it ends with entry {head.number}")
        if head is not None and head != self.head:
            raise ChainBroken(self.head.number + 1, "there may have been one: where the log ends was changed, or taken away")
        if self._kept is not None:
            raise ChainBroken(self._kept.number, "it was kept, and is not in the log any more: cut off, or let go since")
