"""Webhooks, and what is on its way to them. The seam to whatever remembers them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from everforge.wire.ids import AccountId

NOT_DEAD = "there is no such delivery among those that were given up"


def queue_full(at_most: int) -> str:
    return f"{at_most} deliveries wait for this webhook already, which is the limit: try again when some have arrived"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRecord:
    id: str
    account: AccountId
    url: str
    events: frozenset[str]
    secret: str  # what its deliveries are signed with: it cannot be a hash
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """One event on its way to one webhook."""

    id: str  # the same at every try: who gets it twice knows it again
    webhook: str
    account: AccountId
    event: str
    body: str  # byte for byte as it is signed
    created_at: float
    next_at: float  # when it is tried next, by a clock that nobody sets while the server runs
    attempts: int = 0
    dead_at: float | None = None  # set: it was tried often enough
    error: str | None = None  # why the last try failed


class WebhookBook(Protocol):
    async def add(self, webhook: WebhookRecord, at_most: int) -> None:
        """Durably. Raises TooMany if the account would have more."""
        ...

    async def all(self) -> Sequence[WebhookRecord]:
        """Of all accounts, oldest first."""
        ...

    async def remove(self, account: AccountId, id: str) -> None:
        """With what is on its way to it. Raises WebhookNotFound."""
        ...

    async def remove_all(self, account: AccountId) -> None: ...

    async def enqueue(self, deliveries: Sequence[DeliveryRecord], at_most: int) -> int:
        """A killed server does not lose them when it returns. How many found no place, since so many wait for the same webhook already."""
        ...

    async def due(
        self, before: float, of_each: int, busy: Collection[str] = (), busy_accounts: Collection[AccountId] = ()
    ) -> Sequence[DeliveryRecord]:
        """Those to be tried before that time, so many of each account, the longest waiting first; dead ones aside, and those of webhooks and of
        accounts that are busy."""
        ...

    async def hasten(self, latest: Sequence[float]) -> None:
        """None waits longer than that: the first for what was not tried yet, the second for what was once, the last for what was as often or more."""
        ...

    async def waiting(self) -> int: ...

    async def arrived(self, id: str) -> None: ...

    async def failed(self, id: str, *, attempts: int, next_at: float, error: str) -> None: ...

    async def bury(self, id: str, *, attempts: int, error: str, at: float, at_most: int) -> int:
        """It is not tried any more. Of an account's dead the oldest go, where there would be more; how many."""
        ...

    async def dead(self, account: AccountId, limit: int) -> Sequence[DeliveryRecord]:
        """Newest first."""
        ...

    async def revive(self, account: AccountId, id: str | None, at: float, at_most: int) -> int:
        """That one, or the dead ones of the account, the oldest first and no more than may wait for each webhook, are tried anew; how many. Raises
        DeliveryNotFound where it is named and not there, TooMany where it would be one too many."""
        ...
