"""Webhooks of a store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from everforge.wire.errors import DeliveryNotFound, TooMany, WebhookNotFound
from everforge.wire.ids import AccountId

from .webhooks import NOT_DEAD, DeliveryRecord, WebhookRecord, queue_full


class MemoryWebhooks:
    def __init__(self) -> None:
        self._webhooks: dict[str, WebhookRecord] = {}
        self._deliveries: dict[str, DeliveryRecord] = {}

    async def add(self, webhook: WebhookRecord, at_most: int) -> None:
        if sum(one.account == webhook.account for one in self._webhooks.values()) >= at_most:
            raise TooMany(f"an account has {at_most} webhooks at most; delete one first")
        self._webhooks[webhook.id] = webhook

    async def all(self) -> Sequence[WebhookRecord]:
        return sorted(self._webhooks.values(), key=lambda one: (one.created_at, one.id))

    async def remove(self, account: AccountId, id: str) -> None:
        found = self._webhooks.get(id)
        if found is None or found.account != account:
            raise WebhookNotFound("there is no such webhook")
        del self._webhooks[id]
        self._deliveries = {key: one for key, one in self._deliveries.items() if one.webhook != id}

    async def remove_all(self, account: AccountId) -> None:
        self._webhooks = {key: one for key, one in self._webhooks.items() if one.account != account}
        self._deliveries = {key: one for key, one in self._deliveries.items() if one.account != account}

    async def enqueue(self, deliveries: Sequence[DeliveryRecord], at_most: int) -> int:
        waiting = Counter(one.webhook for one in self._deliveries.values() if one.dead_at is None)
        left_out = 0
        for one in deliveries:
            if waiting[one.webhook] >= at_most or one.webhook not in self._webhooks:
                left_out += 1
                continue
            waiting[one.webhook] += 1
            self._deliveries[one.id] = one
        return left_out

    async def due(
        self, before: float, of_each: int, busy: Collection[str] = (), busy_accounts: Collection[AccountId] = ()
    ) -> Sequence[DeliveryRecord]:
        waiting = [one for one in self._deliveries.values() if one.dead_at is None and one.next_at < before]
        found, of = list[DeliveryRecord](), Counter[AccountId]()
        for one in sorted(waiting, key=lambda one: one.next_at):
            if one.webhook not in busy and one.account not in busy_accounts and of[one.account] < of_each:
                of[one.account] += 1
                found.append(one)
        return found

    async def hasten(self, latest: Sequence[float]) -> None:
        for one in [one for one in self._deliveries.values() if one.dead_at is None]:
            at = latest[min(one.attempts, len(latest) - 1)]
            self._deliveries[one.id] = replace(one, next_at=min(one.next_at, at))

    async def waiting(self) -> int:
        return sum(one.dead_at is None for one in self._deliveries.values())

    async def arrived(self, id: str) -> None:
        self._deliveries.pop(id, None)

    async def failed(self, id: str, *, attempts: int, next_at: float, error: str) -> None:
        if found := self._deliveries.get(id):
            self._deliveries[id] = replace(found, attempts=attempts, next_at=next_at, error=error)

    async def bury(self, id: str, *, attempts: int, error: str, at: float, at_most: int) -> int:
        found = self._deliveries.get(id)
        if found is None:
            return 0
        self._deliveries[id] = replace(found, attempts=attempts, error=error, dead_at=at)
        oldest = (await self.dead(found.account, len(self._deliveries)))[at_most:]
        for one in oldest:
            del self._deliveries[one.id]
        return len(oldest)

    async def dead(self, account: AccountId, limit: int) -> Sequence[DeliveryRecord]:
        found = [one for one in self._deliveries.values() if one.account == account and one.dead_at is not None]
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]

    async def revive(self, account: AccountId, id: str | None, at: float, at_most: int) -> int:
        found = [one for one in await self.dead(account, len(self._deliveries)) if id in (None, one.id)]
        if id is not None and not found:
            raise DeliveryNotFound(NOT_DEAD)
        waiting = Counter(one.webhook for one in self._deliveries.values() if one.dead_at is None)
        revived = 0
        for one in reversed(found):
            if waiting[one.webhook] < at_most:
                waiting[one.webhook] += 1
                revived += 1
                self._deliveries[one.id] = replace(one, attempts=0, next_at=at, dead_at=None)
        if id is not None and not revived:
            raise TooMany(queue_full(at_most), limit="webhook_queue_max")
        return revived
