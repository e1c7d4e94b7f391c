# Made from _async/audit.py by tools/make_sync.py; change it there.
"""The audit log of the account; of the whole server for its owner, who can check that nobody was at it."""

from __future__ import annotations

from collections.abc import Iterator

from everforge.wire import api
from everforge.wire.audit import PRUNED, AuditEntry, AuditHead, Chain, ChainBroken, plain
from everforge.wire.auditpart import Part
from everforge.wire.errors import Forbidden

from .door import Door

ENTRIES_A_PAGE = 500


class Audit:
    def __init__(self, door: Door) -> None:
        self._door = door

    def entries(
        self, *, since: str | None = None, machine: str | None = None, action: str | None = None, account: str | None = None, after: int = 0
    ) -> Iterator[AuditEntry]:
        """Oldest first; pages by itself. `action` is the whole of it, or its first part. `account`, by name, is for the server's owner."""
        next: int | None = after
        while next is not None:
            page = self.page(since=since, machine=machine, action=action, account=account, after=next)
            for entry in page.entries:
                yield entry
            next = page.next

    def page(
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
        return self._door.get(api.AuditPage, "/audit", query)

    def head(self) -> AuditHead | None:
        """The last entry's number and hash, for the owner: who keeps it elsewhere can prove later what the log was then."""
        return (self.page(limit=1, last=True)).head

    def verify(self, *, kept: AuditHead | None = None) -> Chain:
        """Every entry against the one before, here and not on the server, and against an end of the log that was `kept` elsewhere. For the owner.

        Raises ChainBroken, which names the first unsound one; Forbidden.
        """
        while True:
            first = self.first()
            try:
                return self._verified(kept)
            except ChainBroken:
                if not self.let_go_since(first):
                    raise

    def first(self) -> int:
        """The number of the oldest entry, or 0 where there is none."""
        entries = (self.page(limit=1)).entries
        return entries[0].number if entries else 0

    def let_go_since(self, first: int) -> bool:
        """Is that entry, which was the first, not there any more, and does the log itself say so? Then what was read since may lack some."""
        now = self.first()
        if now <= first:
            return False
        says_so = (self.page(action=PRUNED, limit=1, last=True)).entries
        through = says_so[0].detail.get("through") if says_so else None
        return type(through) is int and through >= now - 1

    def _verified(self, kept: AuditHead | None) -> Chain:
        head, chain = self.head(), Chain(kept)
        if head is None:
            raise Forbidden(
                "only the owner of the server sees the whole audit log, and can check it; "
                "check your own entries with `everforge audit verify --part`, in Python with verify_part()"
            )
        for entry in self.entries():
            if entry.number > head.number:
                break  # what was written since is not looked at
            chain.add(plain(entry))
        chain.end(head)
        return chain

    def verify_part(self, *, kept: AuditHead | None = None) -> Part:
        """The entries that this token sees, as far as they tell without those between: none was changed, and none `kept` elsewhere is missing.

        Raises ChainBroken, which names the first unsound one.
        """
        part = Part(kept)
        for entry in self.entries():
            part.add(plain(entry))
        part.end()
        return part
