"""The audit log, as it is kept: entries are added at its end, and old ones let go at its beginning. Nothing is ever changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from everforge.wire.audit import PRUNED, AuditEntry, AuditHead, Seen, canonical, moment, seal, to_ms

ENTRY_BYTES = 400  # of one without the texts below, in the table and its indexes
TEXTS = ("account_name", "machine", "address", "detail")  # columns whose length others decide
PRUNED_TO = 0.9  # of the bytes that are allowed: not a few entries every hour, each with an entry of its own
PRUNE_MAX = 50_000  # entries let go under one anchor: whoever checks a log that was left in the middle of it must keep so many hashes in mind
PRUNE_STEP = 1_000  # entries let go in one write, with everyone else's in between


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """All that is given must match."""

    account: str | None = None
    machine: str | None = None
    action: str | None = None  # the whole of it, or its first part: `machine` finds `machine.create`
    since_ms: int | None = None
    after: int = 0  # entries with a higher number, oldest first
    limit: int = 500
    last: bool = False  # the newest ones instead; they too come oldest first


class AuditBook(Protocol):
    async def append(self, seen: Sequence[Seen]) -> None:
        """In this order, at the end of the chain, all or none. A killed server does not lose them when it returns; a power cut may."""
        ...

    async def entries(self, query: AuditQuery) -> Sequence[AuditEntry]: ...

    async def head(self) -> AuditHead: ...

    async def prune(self, before_ms: int, bytes_max: int, at: float) -> int:
        """Let go what is older, and the oldest of what takes more bytes; returns how many. An entry of its own then says so."""
        ...


def sealed(seen: Sequence[Seen], head: AuditHead) -> list[AuditEntry]:
    made: list[AuditEntry] = []
    for one in seen:
        entry = seal(one, head)
        head = AuditHead(number=entry.number, hash=entry.hash)
        made.append(entry)
    return made


def can_be_kept(seen: Seen) -> bool:
    """Is it, whatever was noted, of such a kind that it can be sealed, written and read again?"""
    try:
        canonical(seen.detail)
        to_ms(seen.time)
        for field in fields(Seen):
            value = getattr(seen, field.name)
            if field.name != "detail" and value is not None:
                value.encode()  # as the database will
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return False
    return True


def anchor(through: AuditHead, at: float) -> Seen:
    """The first entry that is kept follows this hash."""
    return Seen(time=moment(at), action=PRUNED, detail={"through": through.number, "hash": through.hash})


def size_bytes(entry: Seen) -> int:
    texts = (entry.account_name, entry.machine, entry.address, canonical(entry.detail))
    return ENTRY_BYTES + sum(len(text.encode()) for text in texts if text is not None)
