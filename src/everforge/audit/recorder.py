"""Writes the audit log behind: entries wait in a bounded queue, and go to the store together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from everforge.store.audit import AuditBook, AuditQuery, can_be_kept, size_bytes
from everforge.wire.audit import DROPPED, UNREADABLE, Seen, moment, to_ms

from .allowance import DAY_SECONDS, Allowance
from .settings import AuditSettings, check

log = logging.getLogger(__name__)
BATCH_MAX = 500  # entries in one write
RETRY_SECONDS = 0.5  # after a write that failed, e.g. for want of disk
CLOSE_SECONDS = 5.0  # for what still waits when the server stops
PRUNE_SECONDS = 3600.0
FIRST_PRUNE_SECONDS = 60.0  # after the start
NO_LIMIT_BYTES = 2**62
PRUNE_SHARE = 0.1  # of the bytes that are allowed: so many more may lie there until old ones are let go
COUNT_SECONDS = 900.0  # until what was only counted is an entry; a server that is killed loses no more


class _Waiting(NamedTuple):
    seen: Seen
    written: asyncio.Future[None] | None  # somebody waits for it


class Recorder:
    def __init__(self, book: AuditBook, settings: AuditSettings, clock: Callable[[], float] = time.time) -> None:
        check(settings)
        self.book = book
        self.written = 0
        self.dropped = 0
        self._allowance = Allowance(settings.audit_bytes_max / settings.audit_account_days)
        self._settings = settings
        self._clock = clock
        self._began = clock() - time.monotonic()
        self._waiting: deque[_Waiting] = deque()
        self._missed = 0  # dropped, and not yet told in an entry
        self._some = asyncio.Event()
        self._urgent = asyncio.Event()  # somebody waits: write at once
        self._room = asyncio.Event()
        self._unpruned_bytes = 0  # written since old entries were let go last
        self._much = asyncio.Event()  # of that

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def record(self, seen: Seen, *, wait: bool) -> int:
        """`wait`: until it is written, or for as long as the settings say. Without it this is only waited for when the queue is full.

        0, unless the account has had its part of the log: then how many of the same kind are counted, with this one, in an entry that comes later.
        """
        if counted := self._allowance.count(seen):
            if self._allowance.is_full:
                self._write_counts()
            return counted
        await self._record(seen, wait)
        return 0

    async def _record(self, seen: Seen, wait: bool) -> None:
        if len(self._waiting) >= self._settings.audit_queue_max and not await self._found_room():
            self.dropped += 1
            self._missed += 1
            return
        written = asyncio.get_running_loop().create_future() if wait else None
        self._waiting.append(_Waiting(seen, written))
        self._some.set()
        if written is not None:
            self._urgent.set()
            await asyncio.wait([written], timeout=self._settings.audit_wait_seconds)

    async def _found_room(self) -> bool:
        deadline = time.monotonic() + self._settings.audit_wait_seconds
        while len(self._waiting) >= self._settings.audit_queue_max:
            self._room.clear()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._room.wait()
        return True

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """What waits at the end of the block is written first, if the store takes it."""
        tasks = [asyncio.ensure_future(task) for task in (self._write_all(), self._prune_now_and_then(), self._write_counts_now_and_then())]
        try:
            yield
        finally:
            self._write_counts()
            self._urgent.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    while self._waiting and not tasks[0].done():  # noqa: ASYNC110 - only here, at the end
                        await asyncio.sleep(0.005)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if self._waiting:
                log.error("%d entries of the audit log could not be written", len(self._waiting))

    async def _write_all(self) -> None:
        failed = False
        while True:
            await self._some.wait()
            if not self._urgent.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.audit_flush_seconds):
                        await self._urgent.wait()
            self._urgent.clear()
            try:
                await self._write_some()
                failed = False
            except Exception as e:
                if not failed:
                    log.error("the audit log cannot be written, its entries wait: %s", e)
                failed = True
                await asyncio.sleep(RETRY_SECONDS)
            if not self._waiting:
                self._some.clear()

    async def _write_some(self) -> None:
        """They leave the queue when they are written, and not before."""
        batch = [self._waiting[i] for i in range(min(len(self._waiting), BATCH_MAX))]
        missed = self._missed
        entries = [one.seen for one in batch]
        if missed:
            entries.append(Seen(time=moment(self._clock()), action=DROPPED, detail={"entries": missed}))
        await self._append(entries)
        self._missed -= missed
        self.written += len(entries)
        for one in batch:
            self._waiting.popleft()
            if one.written is not None and not one.written.done():
                one.written.set_result(None)
        self._room.set()
        if self._waiting:
            self._urgent.set()  # a full batch: go on

    async def _append(self, entries: Sequence[Seen]) -> None:
        """One that cannot be written down, for a mistake of ours, does not keep the others from it: another stands in its place, and says so."""
        try:
            await self.book.append(entries)
            kept = entries
        except Exception:
            kept = [one if can_be_kept(one) else self._in_place_of(one) for one in entries]
            if kept == entries:
                raise  # it is the store that cannot, and perhaps can later
            log.error("an entry of the audit log cannot be written down as it is")
            await self.book.append(kept)
        self._unpruned_bytes += sum(map(size_bytes, kept))
        if self._unpruned_bytes > self._settings.audit_bytes_max * PRUNE_SHARE:
            self._much.set()

    def _in_place_of(self, seen: Seen) -> Seen:
        request = seen.request if isinstance(seen.request, str) and seen.request.isascii() else None
        return Seen(time=moment(self._clock()), action=UNREADABLE, request=request, detail={"action": ascii(seen.action)[1:-1]})

    async def _write_counts_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            self._write_counts()

    def _write_counts(self) -> None:
        """They find room also in a queue that is full: they are few, and stand for many."""
        if counts := self._allowance.take():
            self._waiting.extend(_Waiting(one, None) for one in counts)
            self._some.set()

    async def _prune_now_and_then(self) -> None:
        """And whenever much was written: nobody can fill the disk in between."""
        pause = FIRST_PRUNE_SECONDS
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._much.wait()
            self._much.clear()
            self._unpruned_bytes, pause = 0, PRUNE_SECONDS
            try:
                await self.prune()
            except Exception as e:
                log.warning("old entries of the audit log are let go later: %s", e)

    async def prune(self) -> int:
        """What the settings do not keep any longer. A clock that somebody sets ahead makes nothing old."""
        now, days = min(self._clock(), self._began + time.monotonic()), self._settings.audit_age_days
        before_ms = int((now - days * DAY_SECONDS) * 1000) if days else 0
        gone = await self.book.prune(before_ms, NO_LIMIT_BYTES, now) if before_ms else 0
        if by_bytes := await self.book.prune(0, self._settings.audit_bytes_max, now):
            await self._warn_of_young(now)
        return gone + by_bytes

    async def _warn_of_young(self, now: float) -> None:
        """One account alone cannot have done that: many did much, or the log is too small for what is done here."""
        oldest = await self.book.entries(AuditQuery(limit=1))
        with contextlib.suppress(ValueError):  # a time that somebody was at
            days = (now - to_ms(oldest[0].time) / 1000) / DAY_SECONDS
            if days < self._settings.audit_account_days:
                log.warning("the audit log is full, and reaches back no more than %.1f days: audit_bytes_max says how much is kept", days)
