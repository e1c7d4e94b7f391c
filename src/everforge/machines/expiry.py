"""Deletes machines when their time has come. What is due is asked of the store, so a restart forgets nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable

from everforge.store.base import MachineRecord, Store

log = logging.getLogger(__name__)
LOOK_SECONDS = 60.0  # at the most, while any machine is to expire: a clock that is set is noticed so soon
RETRY_SECONDS = 10.0  # after one that could not be deleted, as on a full disk
PAGE = 100


class Expiry:
    def __init__(self, store: Store, delete: Callable[[MachineRecord], Awaitable[None]], clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._delete = delete
        self._clock = clock
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work(), name="expiry")

    def look_again(self) -> None:
        """A machine got a time to expire."""
        self._changed.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while True:
            self._changed.clear()
            try:
                pause_seconds = await self._delete_due()
            except Exception:
                log.exception("machines that have expired could not be looked for; tried again soon")
                pause_seconds = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds):
                    await self._changed.wait()

    async def _delete_due(self) -> float | None:
        """How long there is nothing to do; None: until somebody says so."""
        due = await self._store.expiring(self._clock(), PAGE)
        gone = [await self._try(record) for record in due]
        if not all(gone):
            return RETRY_SECONDS
        if due:
            return 0
        following = await self._store.expiring(math.inf, 1)
        if not following or following[0].expires_at is None:
            return None
        return max(0.0, min(following[0].expires_at - self._clock(), LOOK_SECONDS))

    async def _try(self, record: MachineRecord) -> bool:
        fresh = await self._store.machine(record.id)
        if fresh is None or fresh.expires_at is None or fresh.expires_at > self._clock():
            return True  # it got more time meanwhile
        try:
            await self._delete(record)
        except Exception as e:
            log.warning("machine %s has expired and could not be deleted yet: %s", record.name, e)
            return False
        log.info("machine %s has expired", record.name)
        return True
