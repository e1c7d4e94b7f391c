"""What machines say passes here on its way to the tape, and a flood waits, so that the server is there for those who were just asked for something.

One loop and one writer serve all machines. One that prints without end could keep both of them busy for good, and every answer of every other
machine would wait behind some of it. So a machine may say at once what takes FREE_SECONDS of the server, and go on with FREE_SHARE of its time; what
comes on top of that is a flood. All floods together have SHARE of the time, and FREE_SHARE of it freely. Nobody waits on a server that has nothing
else to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from everforge.wire.ids import MachineId

FREE_SECONDS = 0.02  # half a megabyte of lines: what people print is no flood
FREE_SHARE = 0.05  # instructions that print a line or two, one after the other
SHARE = 0.1
# While a large message is read nothing else of the server runs, in whatever thread: of that a machine has this much at once, and this share for good.
LARGE_FREE_SECONDS, LARGE_SHARE = 0.1, 0.02
# While somebody waits for an answer of the very machine, which comes behind all that it has said: never much.
AWAITED_SHARE, LARGE_AWAITED_SHARE = 0.3, 0.1
HOLD_SECONDS_MAX = 0.1  # at once, then it is looked whether somebody waits now
WANTED_SECONDS = 10.0  # whoever was asked for something so long ago may be asked again any moment

Sleep = Callable[[float], Awaitable[None]]


class Weir:
    """One for all machines of a server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self.clock = clock
        self.sleep = sleep
        self.held: set[Flow] = set()  # those that wait now
        self._latest: MachineId | None = None  # who was asked for something last, and
        self._latest_at = self._other_at = clock() - WANTED_SECONDS  # when; and when anybody else was

    def ask(self, machine: MachineId) -> None:
        """It was asked for something, or has answered."""
        if machine != self._latest:
            self._latest, self._other_at = machine, self._latest_at
        self._latest_at = self.clock()

    def is_wanted(self, *, but: MachineId) -> bool:
        """Was any machine but this one asked for something lately?"""
        at = self._other_at if but == self._latest else self._latest_at
        return self.clock() < at + WANTED_SECONDS


class Flow:
    """What one machine says."""

    def __init__(self, weir: Weir, machine: MachineId) -> None:
        self._weir = weir
        self._machine = machine
        self._level_seconds = 0.0  # what it said lately, less its free share since
        self._level_at = weir.clock()
        self._large_paid_at = weir.clock()
        self._awaited_until = weir.clock()
        self._held_seconds = 0.0
        self._held_since: float | None = None

    def ask(self) -> None:
        self._weir.ask(self._machine)

    def await_answer(self, seconds: float) -> None:
        """Somebody waits for it now, for so long at most."""
        self._awaited_until = max(self._awaited_until, self._weir.clock() + seconds)

    def answered(self) -> None:
        """Nobody waits any more; another who does waits a little longer."""
        self._awaited_until = self._weir.clock()

    async def passed(self, took_seconds: float) -> None:
        """Something that it said is on the tape, and took so much of the server. Returns when there is room for more."""
        now, floods = self._weir.clock(), len(self._weir.held) + 1
        level = max(0.0, self._level_seconds - FREE_SHARE / floods * (now - self._level_at)) + took_seconds
        self._level_seconds, self._level_at = min(level, FREE_SECONDS), now  # the rest is paid for by waiting, or nobody minds
        if level > FREE_SECONDS and self._weir.is_wanted(but=self._machine):
            await self._hold(took_seconds * (floods / SHARE - 1), took_seconds * (1 / AWAITED_SHARE - 1))

    async def before_large(self) -> None:
        """Until the large messages so far are paid for: the first comes at once."""
        if self._weir.is_wanted(but=self._machine):
            seconds = self._large_paid_at - self._weir.clock() - LARGE_FREE_SECONDS / LARGE_SHARE
            await self._hold(seconds, seconds * LARGE_SHARE / LARGE_AWAITED_SHARE)
            paid_at = self._weir.clock() + LARGE_FREE_SECONDS / LARGE_SHARE
            self._large_paid_at = min(self._large_paid_at, paid_at)  # also who was held for less has paid for it

    def passed_large(self, took_seconds: float) -> None:
        self._large_paid_at = max(self._large_paid_at, self._weir.clock()) + took_seconds / LARGE_SHARE

    def _limit(self, seconds: float, awaited_seconds: float) -> float:
        return awaited_seconds if self._weir.clock() < self._awaited_until else seconds

    @property
    def held_seconds(self) -> float:
        """How long it was not listened to, in all: whoever waits for its answer must not hold that against it."""
        return self._held_seconds + (0.0 if self._held_since is None else self._weir.clock() - self._held_since)

    async def _hold(self, seconds: float, awaited_seconds: float) -> None:
        if seconds <= 0:
            return
        self._held_since = since = self._weir.clock()
        self._weir.held.add(self)
        try:
            while (left := since + self._limit(seconds, awaited_seconds) - self._weir.clock()) > 0:
                await self._weir.sleep(min(left, HOLD_SECONDS_MAX))
        finally:
            self._weir.held.discard(self)
            self._held_seconds, self._held_since = self.held_seconds, None
