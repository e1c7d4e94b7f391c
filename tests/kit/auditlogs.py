"""An audit log whose oldest entries go while somebody reads it."""

from __future__ import annotations

from collections.abc import Sequence

from everforge.store.audit import AuditQuery, anchor
from everforge.store.memory_audit import MemoryAudit
from everforge.wire.audit import PRUNED, AuditEntry, AuditHead, Seen, moment


class LetGoMeanwhile(MemoryAudit):
    """Oldest entries go, as they do in a database: an anchor first, and then some at a time, here whenever it is read."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self._append([Seen(time=moment(n), action="machine.create") for n in range(entries)])
        self.reads_before = 0  # it is let go
        self.through = self.step = 0

    async def entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        await self._go_on()
        return await super().entries(query)

    async def head(self) -> AuditHead:
        await self._go_on()
        return await super().head()

    async def _go_on(self) -> None:
        if self.reads_before > 0:
            self.reads_before -= 1
        elif self.through and self.kept[0].number <= self.through:
            if self.kept[-1].action != PRUNED:
                last = next(entry for entry in self.kept if entry.number == self.through)
                self._append([anchor(AuditHead(number=last.number, hash=last.hash), 1e6)])
            else:
                del self.kept[: min(self.step, self.through + 1 - self.kept[0].number)]
