"""The audit log of a store in memory."""

from __future__ import annotations

from collections.abc import Sequence

from everforge.wire.audit import GENESIS, AuditEntry, AuditHead, Seen, to_ms

from .audit import PRUNED_TO, AuditQuery, anchor, sealed, size_bytes


class MemoryAudit:
    def __init__(self) -> None:
        self.kept: list[AuditEntry] = []
        self._head = AuditHead(number=0, hash=GENESIS)

    async def append(self, seen: Sequence[Seen]) -> None:
        self._append(seen)

    def _append(self, seen: Sequence[Seen]) -> None:
        self.kept += (made := sealed(seen, self._head))
        if made:
            self._head = AuditHead(number=made[-1].number, hash=made[-1].hash)

    async def entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        found = [entry for entry in self.kept if _matches(entry, query)]
        return found[-query.limit :] if query.last else found[: query.limit]

    async def head(self) -> AuditHead:
        return self._head

    async def prune(self, before_ms: int, bytes_max: int, at: float) -> int:
        keep = len(self.kept)
        if sum(map(size_bytes, self.kept)) > bytes_max:
            keep, left = 0, bytes_max * PRUNED_TO
            while keep < len(self.kept) and (left := left - size_bytes(self.kept[-1 - keep])) >= 0:
                keep += 1
        old = next((at for at, entry in enumerate(self.kept) if to_ms(entry.time) >= before_ms), len(self.kept))
        gone = max(len(self.kept) - keep, old)
        if gone:
            last = self.kept[gone - 1]
            self._append([anchor(AuditHead(number=last.number, hash=last.hash), at)])
            del self.kept[:gone]
        return gone


def _matches(entry: AuditEntry, query: AuditQuery) -> bool:
    q = query
    return (
        entry.number > q.after
        and q.account in (None, entry.account)
        and q.machine in (None, entry.machine)
        and (q.action is None or entry.action == q.action or entry.action.startswith(f"{q.action}."))
        and (q.since_ms is None or to_ms(entry.time) >= q.since_ms)
    )
