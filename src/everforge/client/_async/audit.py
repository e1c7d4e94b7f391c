"""The audit log of the account; of the whole server for its owner, who can check that nobody was at it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from everforge.wire import api
from everforge.wire.audit import AuditEntry, AuditHead, Chain, plain
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
        head, chain = await self.head(), Chain(kept)
        if head is None:
            raise Forbidden(
                "only the owner of the server sees the whole audit log, and can check it; others check their own entries, as a part of it"
            )
        async for entry in self.entries():
            chain.add(plain(entry))
            if entry.number >= head.number:
                break  # what was written since is not looked at
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
