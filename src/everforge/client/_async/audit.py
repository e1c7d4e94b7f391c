"""The audit log of the account; of the whole server for its owner, who can check that nobody was at it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from everforge.wire import api
from everforge.wire.audit import PRUNED, AuditEntry, AuditHead, Chain, ChainBroken, plain
from everforge.wire.auditpart import Part
from everforge.wire.errors import Forbidden

from .door import AsyncDoor

ENTRIES_A_PAGE = 500


class AsyncAudit:
    def __init__(self, door: AsyncDoor) -> None:
        self._door = door

    async def entries(
        self, *, since: str | None = None, machine: str | None = None, action: str | None = None, account: str | None = None, after: int = 0
    ) -> AsyncIterator[AuditEntry]:
        """Oldest first; pages by itself. `action` is the whole of it, or its first part. `account`, by name, is for the server's owner."""
        next: int | None = after
        while next is not None:
            page = await self.page(since=since, machine=machine, action=action, account=account, after=next)
            for entry in page.entries:
                yield entry
            next = page.next

    async def page(
        self,
        *,
        since: str | None = None,
        machine: str | None = None,
        action: str | None = None,
        account: str | None = None,
        after: int = 0,
        limit: int = ENTRIES_A_PAGE,
        last: bool = False,
    ) -> api.AuditPage:
        """One page. `last`: the newest entries instead."""
        query = {"since": since, "machine": machine, "action": action, "account": account, "after": after, "limit": limit, "last": last or None}
        return await self._door.get(api.AuditPage, "/audit", query)

    async def head(self) -> AuditHead | None:
        """The last entry's number and hash, for the owner: who keeps it elsewhere can prove later what the log was then."""
        return (await self.page(limit=1, last=True)).head

    async def verify(self, *, kept: AuditHead | None = None) -> Chain:
        """Every entry against the one before, here and not on the server, and against an end of the log that was `kept` elsewhere. For the owner.

        Raises ChainBroken, which names the first unsound one; Forbidden.
        """
        while True:
            first = await self.first()
            try:
                return await self._verified(kept)
            except ChainBroken:
                if not await self.let_go_since(first):
                    raise

    async def first(self) -> int:
        """The number of the oldest entry, or 0 where there is none."""
        entries = (await self.page(limit=1)).entries
        return entries[0].number if entries else 0

    async def let_go_since(self, first: int) -> bool:
        """Is that entry, which was the first, not there any more, and does the log itself say so? Then what was read since may lack some."""
        now = await self.first()
        if now <= first:
            return False
        says_so = (await self.page(action=PRUNED, limit=1, last=True)).entries
        through = says_so[0].detail.get("through") if says_so else None
        return type(through) is int and through >= now - 1

    async def _verified(self, kept: AuditHead | None) -> Chain:
        head, chain = await self.head(), Chain(kept)
        if head is None:
            raise Forbidden(
                "only the owner of the server sees the whole audit log, and can check it; "
                "check your own entries with `everforge audit verify --part`, in Python with verify_part()"
            )
        async for entry in self.entries():
            if entry.number > head.number:
                break  # what was written since is not looked at
            chain.add(plain(entry))
        chain.end(head)
        return chain

    async def verify_part(self, *, kept: AuditHead | None = None) -> Part:
        """The entries that this token sees, as far as they tell without those between: none was changed, and none `kept` elsewhere is missing.

        Raises ChainBroken, which names the first unsound one.
        """
        part = Part(kept)
        async for entry in self.entries():
            part.add(plain(entry))
        part.end()
        return part
