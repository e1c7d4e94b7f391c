"""Webhooks in the database, and what is on its way to them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from everforge.store.webhooks import NOT_DEAD, DeliveryRecord, WebhookRecord, queue_full
from everforge.wire.errors import DeliveryNotFound, TooMany, WebhookNotFound
from everforge.wire.ids import AccountId

from .changes import Changes
from .readers import Readers
from .statements import insert_text
from .tables import deliveries, webhooks
from .writer import Writer

_ADD = insert_text(webhooks)
_COUNT = "SELECT COUNT(*) FROM webhooks WHERE account = :account"
_ALL = f"SELECT {', '.join(c.name for c in webhooks.c)} FROM webhooks ORDER BY created_at, id"
_IS_THERE = "SELECT 1 FROM webhooks WHERE id = :webhook"
_REMOVE = "DELETE FROM webhooks WHERE id = :id AND account = :account"
_ENQUEUE = insert_text(deliveries)
_COLUMNS = ", ".join(c.name for c in deliveries.c)
_WAIT_FOR = "SELECT COUNT(*) FROM deliveries WHERE webhook = :webhook AND dead_at IS NULL"
_WAITING = "SELECT COUNT(*) FROM deliveries WHERE dead_at IS NULL"
_HEARERS = "SELECT DISTINCT account FROM webhooks WHERE account NOT IN (SELECT value FROM json_each(:busy_accounts))"
_FIRST = (
    "SELECT id FROM deliveries WHERE account = hearers.account AND dead_at IS NULL AND next_at < :before"
    " AND webhook NOT IN (SELECT value FROM json_each(:busy)) ORDER BY next_at LIMIT :of_each"
)
_DUE = (
    f"SELECT {', '.join(f'found.{c.name}' for c in deliveries.c)} FROM ({_HEARERS}) AS hearers"
    f" CROSS JOIN deliveries AS found WHERE found.id IN ({_FIRST}) ORDER BY found.next_at"  # CROSS: in that order
)
_HASTEN = "UPDATE deliveries SET next_at = :latest WHERE dead_at IS NULL AND next_at > :latest AND attempts BETWEEN :least AND :most"
_FAILED = "UPDATE deliveries SET attempts = :attempts, next_at = :next_at, error = :error WHERE id = :id"
_BURY = "UPDATE deliveries SET attempts = :attempts, error = :error, dead_at = :at WHERE id = :id"
_DEAD = f"SELECT {_COLUMNS} FROM deliveries WHERE account = :account AND dead_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT :limit"
_FORGET_OLDEST = (
    "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE account = (SELECT account FROM deliveries WHERE id = :id)"
    " AND dead_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET :at_most)"
)
_WITH_DEAD = "SELECT DISTINCT webhook FROM deliveries WHERE account = :account AND dead_at IS NOT NULL AND (:id IS NULL OR id = :id)"
_REVIVE = (
    "UPDATE deliveries SET attempts = 0, next_at = :at, dead_at = NULL WHERE id IN (SELECT id FROM deliveries"
    " WHERE webhook = :webhook AND dead_at IS NOT NULL AND (:id IS NULL OR id = :id) ORDER BY created_at, id LIMIT :room)"
)


ATTEMPTS_MAX = 2**31 - 1  # more than any


class SqlWebhooks:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, webhook: WebhookRecord, at_most: int) -> None:
        def apply(changes: Changes) -> None:
            if changes.connection.execute(_COUNT, {"account": webhook.account}).fetchone()[0] >= at_most:
                raise TooMany(f"an account has {at_most} webhooks at most; delete one first")
            w = webhook
            changes.connection.execute(_ADD, (w.id, w.account, w.url, " ".join(sorted(w.events)), w.secret, w.created_at))

        await self._writer.write(apply, durable=True)

    async def all(self) -> Sequence[WebhookRecord]:
        return [_to_webhook(row) for row in await self._rows(_ALL, {})]

    async def remove(self, account: AccountId, id: str) -> None:
        def apply(changes: Changes) -> None:
            if not changes.connection.execute(_REMOVE, {"id": id, "account": account}).rowcount:
                raise WebhookNotFound("there is no such webhook")
            changes.connection.execute("DELETE FROM deliveries WHERE webhook = :id", {"id": id})

        await self._writer.write(apply, durable=True)

    async def remove_all(self, account: AccountId) -> None:
        def apply(changes: Changes) -> None:
            for table in ("webhooks", "deliveries"):
                changes.connection.execute(f"DELETE FROM {table} WHERE account = :account", {"account": account})

        await self._writer.write(apply, durable=False)

    async def enqueue(self, deliveries: Sequence[DeliveryRecord], at_most: int) -> int:
        def apply(changes: Changes) -> int:
            return sum(not _enqueued(changes.connection, one, at_most) for one in deliveries)

        return await self._writer.write(apply, durable=False)

    async def due(
        self, before: float, of_each: int, busy: Collection[str] = (), busy_accounts: Collection[AccountId] = ()
    ) -> Sequence[DeliveryRecord]:
        aside = {"busy": json.dumps(list(busy)), "busy_accounts": json.dumps(list(busy_accounts))}
        return [_to_delivery(row) for row in await self._rows(_DUE, {"before": before, "of_each": of_each, **aside})]

    async def hasten(self, latest: Sequence[float]) -> None:
        last = len(latest) - 1
        wanted = [{"least": n, "most": n if n < last else ATTEMPTS_MAX, "latest": at} for n, at in enumerate(latest)]
        await self._writer.write(lambda changes: changes.connection.executemany(_HASTEN, wanted), durable=False)

    async def waiting(self) -> int:
        return (await self._rows(_WAITING, {}))[0][0]

    async def arrived(self, id: str) -> None:
        await self._write("DELETE FROM deliveries WHERE id = :id", {"id": id})

    async def failed(self, id: str, *, attempts: int, next_at: float, error: str) -> None:
        await self._write(_FAILED, {"id": id, "attempts": attempts, "next_at": next_at, "error": error})

    async def bury(self, id: str, *, attempts: int, error: str, at: float, at_most: int) -> int:
        def apply(changes: Changes) -> int:
            changes.connection.execute(_BURY, {"id": id, "attempts": attempts, "error": error, "at": at})
            return changes.connection.execute(_FORGET_OLDEST, {"id": id, "at_most": at_most}).rowcount

        return await self._writer.write(apply, durable=False)

    async def dead(self, account: AccountId, limit: int) -> Sequence[DeliveryRecord]:
        return [_to_delivery(row) for row in await self._rows(_DEAD, {"account": account, "limit": limit})]

    async def revive(self, account: AccountId, id: str | None, at: float, at_most: int) -> int:
        def apply(changes: Changes) -> int:
            found = changes.connection.execute(_WITH_DEAD, {"account": account, "id": id}).fetchall()
            if id is not None and not found:
                raise DeliveryNotFound(NOT_DEAD)
            revived = 0
            for (webhook,) in found:
                room = at_most - changes.connection.execute(_WAIT_FOR, {"webhook": webhook}).fetchone()[0]
                wanted = {"webhook": webhook, "id": id, "at": at, "room": max(0, room)}
                revived += changes.connection.execute(_REVIVE, wanted).rowcount
            if id is not None and not revived:
                raise TooMany(queue_full(at_most), limit="webhook_queue_max")
            return revived

        return await self._writer.write(apply, durable=False)

    async def _write(self, statement: str, values: Mapping[str, Any]) -> None:
        await self._writer.write(lambda changes: changes.connection.execute(statement, values), durable=False)

    async def _rows(self, statement: str, wanted: Mapping[str, Any]) -> list[Any]:
        def read(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(statement, wanted).fetchall()

        return await self._readers.read(read)


def _enqueued(connection: sqlite3.Connection, d: DeliveryRecord, at_most: int) -> bool:
    of_it = {"webhook": d.webhook}
    if not connection.execute(_IS_THERE, of_it).fetchone() or connection.execute(_WAIT_FOR, of_it).fetchone()[0] >= at_most:
        return False
    row = (d.id, d.webhook, d.account, d.event, d.body, d.created_at, d.attempts, d.next_at, d.dead_at, d.error)
    connection.execute(_ENQUEUE, row)
    return True


def _to_webhook(row: Sequence[Any]) -> WebhookRecord:
    id, account, url, events, secret, created_at = row
    return WebhookRecord(id=id, account=account, url=url, events=frozenset(events.split()), secret=secret, created_at=created_at)


def _to_delivery(row: Sequence[Any]) -> DeliveryRecord:
    return DeliveryRecord(**dict(zip((c.name for c in deliveries.c), row, strict=True)))
