"""The door to webhooks: what a server calls to add and remove them, and to tell events."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from everforge.egress.names import Lookup, look_up
from everforge.store.accounts import AccountBook
from everforge.store.webhooks import DeliveryRecord, WebhookBook, WebhookRecord
from everforge.wire.audit import moment
from everforge.wire.errors import InvalidInput, WebhookFailed, WebhookNotFound
from everforge.wire.ids import AccountId, new_delivery_id, new_webhook_id
from everforge.wire.sentences import show
from everforge.wire.webhooks import EVENTS, TEST, USUAL, key_of, new_secret

from .places import NotReached, place_of
from .postmaster import Postmaster
from .roll import Roll
from .settings import WebhookSettings, check

log = logging.getLogger(__name__)
TOLD_MAX = 10_000  # events that wait to be stored
TOGETHER_MAX = 200  # events stored in one write
DEAD_SHOWN_MAX = 500


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    accounts: tuple[AccountId, ...]  # whose webhooks hear of it
    account: AccountId | None  # whose it is
    machine: str | None
    time: float
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


class Webhooks:
    def __init__(
        self,
        book: WebhookBook,
        accounts: AccountBook,
        settings: WebhookSettings,
        *,
        resolve: Lookup = look_up,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        check(settings)
        self.settings = settings
        self._roll = Roll()
        self.postmaster = Postmaster(book, settings, self._roll, resolve=resolve, clock=clock, steady=steady)
        self.left_out = 0  # events that found no place
        self._book = book
        self._accounts = accounts
        self._clock = clock
        self._told: deque[Event] = deque()
        self._some = asyncio.Event()
        self._closed = False
        self.late: asyncio.Task[None] | None = None  # stores what was told after the end

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        for one in await self._book.all():
            self._roll.add(one)
        self._closed = False
        storing = asyncio.ensure_future(self._store_told())
        async with AsyncExitStack() as undo:
            await undo.enter_async_context(self.postmaster.running())
            try:
                yield
            finally:
                storing.cancel()
                await asyncio.wait([storing])
                self._closed = True
                await self._store_rest()  # what was told last

    # --- of an account ---------------------------------------------------------------------------------------------------------------

    async def add(self, account: AccountId, url: str, events: Collection[str] | None = None, secret: str | None = None) -> WebhookRecord:
        """Raises InvalidInput, TooMany."""
        place_of(url, self.settings.webhook_hosts_open)
        if secret is not None:
            key_of(secret)
        record = WebhookRecord(
            id=new_webhook_id(), account=account, url=url, events=_events(events), secret=secret or new_secret(), created_at=self._clock()
        )  # fmt: skip
        await self._book.add(record, self.settings.webhooks_max)
        self._roll.add(record)
        return record

    def of(self, account: AccountId) -> Sequence[WebhookRecord]:
        return self._roll.of(account)

    async def remove(self, account: AccountId, id: str) -> None:
        """With all that is on its way to it. Raises WebhookNotFound."""
        await self._book.remove(account, id)
        self._roll.drop(id)

    async def remove_all(self, account: AccountId) -> None:
        """The account is gone."""
        await self._book.remove_all(account)
        self._roll.drop_all(account)
        self.postmaster.let_go.pop(account, None)

    async def test(self, account: AccountId, id: str) -> None:
        """Send it one event, now. Raises WebhookNotFound, WebhookFailed; TooMany while enough is under way."""
        webhook = self._roll.get(id)
        if webhook is None or webhook.account != account:
            raise WebhookNotFound("there is no such webhook")
        delivery = new_delivery_id()
        event = Event(TEST, (account,), account, None, self._clock())
        try:
            await self.postmaster.try_once(webhook, delivery, await self._body(delivery, event))
        except NotReached as e:
            raise WebhookFailed(f"the webhook could not be delivered to: {e}") from None

    async def dead(self, account: AccountId) -> Sequence[DeliveryRecord]:
        return await self._book.dead(account, DEAD_SHOWN_MAX)

    def let_go(self, account: AccountId) -> int:
        """How many of the dead there was no room for since the start."""
        return self.postmaster.let_go[account]

    async def retry(self, account: AccountId, id: str | None) -> int:
        """One that was given up, or all of them for which there is room in their queues. Raises DeliveryNotFound, TooMany."""
        count = await self._book.revive(account, id, self.postmaster.steady(), self.settings.webhook_queue_max)
        self.postmaster.look()
        return count

    # --- events ----------------------------------------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Costs next to nothing where nobody wants to hear of it."""
        if not self._roll.hearers(event.kind, event.accounts):
            return
        if len(self._told) >= TOLD_MAX:
            self.left_out += 1
            return
        self._told.append(event)
        self._some.set()
        if self._closed and (self.late is None or self.late.done()):
            self.late = asyncio.ensure_future(self._store_rest())  # machines go to sleep behind closed doors: the next server tells of it

    async def _store_told(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await self._store_some()
            except Exception as e:
                log.warning("events for webhooks wait: %s", e)
                await asyncio.sleep(1.0)
            if self._told:
                self._some.set()

    async def _store_rest(self) -> None:
        try:
            while self._told:
                await self._store_some()
        except Exception as e:
            log.warning("%d events for webhooks are lost: %s", len(self._told), e)

    async def _store_some(self) -> None:
        events = [self._told[i] for i in range(min(len(self._told), TOGETHER_MAX))]
        deliveries = [one for event in events for one in await self._deliveries(event)]
        if deliveries:
            self.left_out += await self._book.enqueue(deliveries, self.settings.webhook_queue_max)
            self.postmaster.look()
        for _ in events:
            self._told.popleft()

    async def _deliveries(self, event: Event) -> list[DeliveryRecord]:
        made: list[DeliveryRecord] = []
        for webhook in self._roll.hearers(event.kind, event.accounts):
            id, now, due = new_delivery_id(), self._clock(), self.postmaster.steady()
            body = await self._body(id, event)
            made.append(DeliveryRecord(id=id, webhook=webhook.id, account=webhook.account, event=event.kind, body=body, created_at=now, next_at=due))
        return made

    async def _body(self, id: str, event: Event) -> str:
        account = None if event.account is None else await self._accounts.account(event.account)
        told = {"id": id, "type": event.kind, "time": moment(event.time), "account": account.name if account else None}
        return json.dumps({**told, "machine": event.machine, "detail": event.detail}, separators=(",", ":"), default=str)


def _events(given: object) -> frozenset[str]:
    if given is None:
        return frozenset(USUAL)
    if isinstance(given, str) or not isinstance(given, Collection) or not given:
        raise InvalidInput("events are a list of words, one at least")
    words = list(cast("Collection[Any]", given))
    if "" in words:
        raise InvalidInput("an event's name is empty: leave events out for all but instruction.ended, or name one at least")
    if unknown := [word for word in words if word not in EVENTS]:
        raise InvalidInput(f"there is no event {show(unknown[0])}; there are {', '.join(EVENTS)}")
    return frozenset(words)
