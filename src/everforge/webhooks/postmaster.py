"""Brings deliveries to their webhooks: several at once, each tried again with growing pauses, and given up after so many tries.

A delivery is in the store from before its first try until it has arrived: a server that is killed in between tries again, and it may arrive twice.
An outcome that the store does not take is told to it again, and the delivery keeps its place so long: else it would be sent as fast as it can be.
Pauses are as long as they are, whatever somebody sets the clock to. What an earlier server noted is known by the clock alone: a clock that was set
forward meanwhile makes one pause shorter, and one that was set back makes none longer than it may be.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from everforge import __version__
from everforge.clocks import steady_clock
from everforge.egress.names import Askers, Lookup, look_up
from everforge.store.webhooks import DeliveryRecord, WebhookBook, WebhookRecord
from everforge.wire.errors import InvalidInput, TooMany
from everforge.wire.ids import AccountId
from everforge.wire.webhooks import ID_HEADER, SIGNATURE_HEADER, TIME_HEADER, signature

from .places import NotReached, place_of
from .post import post
from .roll import Roll
from .settings import WebhookSettings
from .slots import OF_ACCOUNT_MAX, Slots

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0  # after which the store is asked again for what has become due
NOTE_SECONDS = 5.0  # after which an outcome that the store did not take is told to it again
GROWTH = 4.0
GROWTHS_MAX = 64  # beyond any longest pause, and a number still
SPREAD = 0.25  # many that failed together do not come back together
Told = Callable[[str], None]  # delivered, failed, dead or let_go


class Postmaster:
    def __init__(
        self,
        book: WebhookBook,
        settings: WebhookSettings,
        roll: Roll,
        *,
        resolve: Lookup = look_up,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._book = book
        self._settings = settings
        self._roll = roll
        self._askers = Askers(resolve)
        self._clock = clock  # what others read: signatures, and when one was given up
        self.steady = steady or steady_clock()  # what tries go by
        self._under_way: dict[str, asyncio.Task[None]] = {}  # by delivery
        self._slots = Slots()
        self._hastened = False
        self._look = asyncio.Event()
        self.told: Told = lambda _: None
        self.let_go: Counter[AccountId] = Counter()  # dead ones that newer ones took the place of, since the start

    def look(self) -> None:
        """Something new may be due."""
        self._look.set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        task = asyncio.ensure_future(self._run())
        try:
            yield
        finally:
            tasks = [task, *self._under_way.values()]
            for one in tasks:
                one.cancel()  # what was under way stands in the store, and is tried again
            await asyncio.wait(tasks)

    async def _run(self) -> None:
        while True:
            self._look.clear()
            waits = False
            try:
                waits = await self._send_due()
                await self._hasten()
            except Exception as e:
                log.warning("webhooks wait: %s", e)
                waits = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS if waits else None):
                    await self._look.wait()

    async def _send_due(self) -> bool:
        """Does anything wait for its time?"""
        begun = True
        while begun and not self._slots.full:
            begun, under_way, slots = False, set(self._under_way), self._slots  # one that arrives while the store is asked may be in its answer still
            found = await self._book.due(self.steady(), OF_ACCOUNT_MAX * 2, slots.busy_webhooks, slots.busy_accounts)
            for delivery in slots.in_turn(one for one in found if one.id not in under_way):
                if slots.has_room(delivery):
                    self._begin(delivery)
                    begun = True
        return bool(await self._book.waiting())

    async def _hasten(self) -> None:
        """Once, what an earlier server put off by a clock that was ahead of this one."""
        if not self._hastened:
            now, pauses = self.steady(), [0.0]
            while pauses[-1] < self._settings.webhook_pause_seconds_max:
                pauses.append(self._pause(len(pauses)))
            await self._book.hasten([now + pause * (1 + SPREAD) for pause in pauses])
            self._hastened = True

    def _begin(self, delivery: DeliveryRecord) -> None:
        task = asyncio.ensure_future(self._try(delivery))
        self._under_way[delivery.id] = task
        self._slots.take(delivery)

        def done(_: asyncio.Task[None]) -> None:
            del self._under_way[delivery.id]
            self._slots.give_back(delivery)
            self._look.set()

        task.add_done_callback(done)

    async def _try(self, delivery: DeliveryRecord) -> None:
        webhook = self._roll.get(delivery.webhook)
        error: str | None = None
        if webhook is not None:  # else it was deleted meanwhile
            try:
                await self.send(webhook, delivery.id, delivery.body)
                self.told("delivered")
            except NotReached as e:
                error = str(e)
            except Exception:
                log.exception("a webhook could not be tried")
                error = "a mistake of the server's"
        await self._note((lambda: self._book.arrived(delivery.id)) if error is None else self._failure(delivery, error))

    async def _note(self, outcome: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await outcome()
            except Exception as e:
                log.warning("what became of a webhook's delivery is not noted yet: %s", e)
            await asyncio.sleep(NOTE_SECONDS)

    async def try_once(self, webhook: WebhookRecord, id: str, text: str) -> None:
        """Besides what is due, in a place of its own. Raises NotReached; TooMany where there is none."""
        if not self._slots.has_room(webhook):
            message = "as much is under way to webhooks as may be at once, to this one, of this account or in all: try again later"
            raise TooMany(message, limit="webhook_deliveries", retry_after_seconds=math.ceil(self._settings.webhook_seconds))
        try:
            with self._slots.taken(webhook):
                await self.send(webhook, id, text)
        finally:
            self._look.set()  # what is due may have waited for this place

    async def send(self, webhook: WebhookRecord, id: str, text: str) -> None:
        """One try. Raises NotReached."""
        try:
            place = place_of(webhook.url, self._settings.webhook_hosts_open)  # again: what is open may have changed
        except InvalidInput as e:
            raise NotReached(e.message) from None
        body, now = text.encode(), int(self._clock())
        headers = {
            "User-Agent": f"everforge/{__version__}",
            ID_HEADER: id,
            TIME_HEADER: str(now),
            SIGNATURE_HEADER: signature(webhook.secret, id, now, body),
        }
        await post(place, headers, body, resolve=self._askers.of_account(webhook.account), seconds=self._settings.webhook_seconds)

    def _failure(self, delivery: DeliveryRecord, error: str) -> Callable[[], Awaitable[None]]:
        """How it is noted."""
        s, attempts, now = self._settings, delivery.attempts + 1, self._clock()
        self.told("failed")
        if attempts >= s.webhook_tries:
            self.told("dead")
            return lambda: self._bury(delivery, attempts, error, now)
        next_at = self.steady() + self._pause(attempts) * random.uniform(1 - SPREAD, 1 + SPREAD)
        return lambda: self._book.failed(delivery.id, attempts=attempts, next_at=next_at, error=error)

    async def _bury(self, delivery: DeliveryRecord, attempts: int, error: str, at: float) -> None:
        count = await self._book.bury(delivery.id, attempts=attempts, error=error, at=at, at_most=self._settings.webhook_dead_max)
        if count:
            self.let_go[delivery.account] += count
        for _ in range(count):
            self.told("let_go")

    def _pause(self, attempts: int) -> float:
        """After so many tries, in seconds."""
        s = self._settings
        return min(s.webhook_pause_seconds * GROWTH ** min(attempts - 1, GROWTHS_MAX), s.webhook_pause_seconds_max)
