"""What one account sees of the audit log: its own entries, out of a chain whose other links it is not shown.

They tell that each is as its hash says, that they stand in their order, and that two which are neighbours follow each other. A hash covers all that
came before it, of every account: one that was kept elsewhere shows whether the log was written anew before it. Whether an entry is missing they do
not tell: where it stood, another's may have. For that it takes the whole log, which the owner of the server has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .audit import GENESIS, AuditHead, ChainBroken, hash_found


def digest_with(digest: str, hash: str) -> str:
    """Of the hashes so far, beginning with GENESIS, and one more: what is left out of an export shows, though numbers have gaps."""
    return hashlib.sha256(f"{digest}{hash}".encode()).hexdigest()


class Part:
    """Takes such entries one by one, in the order they come, and finds the first that does not fit."""

    def __init__(self, kept: AuditHead | None = None) -> None:
        """`kept` is the last of them at some time before, from where nobody who can write the log could change it."""
        self._kept = kept if kept is not None and kept.number else None  # with 0 there was none yet
        self.count = 0
        self.head = AuditHead(number=0, hash=GENESIS)
        self.digest = GENESIS  # of all hashes

    def add(self, entry: Mapping[str, Any]) -> None:
        """Raises ChainBroken."""
        number, previous = entry.get("number"), entry.get("previous")
        if type(number) is not int or not isinstance(previous, str):
            raise ChainBroken(self.head.number + 1, "what stands where it may have been is no entry")
        if number <= self.head.number:
            raise ChainBroken(number, f"it is out of its place: it stands after entry {self.head.number}")
        if number == self.head.number + 1 and previous != self.head.hash:
            raise ChainBroken(number, "it does not follow the entry before it")
        if (found := hash_found(entry)) != entry.get("hash") or found is None:
            raise ChainBroken(number, "it was changed: its hash is not that of what it says")
        self._compare(AuditHead(number=number, hash=found))
        self.head = AuditHead(number=number, hash=found)
        self.digest = digest_with(self.digest, found)
        self.count += 1

    def _compare(self, head: AuditHead) -> None:
        if self._kept is None or head.number < self._kept.number:
            return
        if head.number > self._kept.number:
            raise self._gone(self._kept)
        if head != self._kept:
            raise ChainBroken(head.number, "it is not the one that was kept: the log was written anew")
        self._kept = None

    def end(self) -> None:
        """There are no more. Raises ChainBroken."""
        if self._kept is not None:
            raise self._gone(self._kept)

    @staticmethod
    def _gone(kept: AuditHead) -> ChainBroken:
        return ChainBroken(kept.number, "it was kept, and is not in the log any more: cut off, or let go since")
