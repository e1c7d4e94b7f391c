"""Sandboxes made ahead: empty ones, that any snapshot of the same image and size can be restored into, and ones restored from a template.

Both kinds are `pooled` for the warden: it destroys them when the server lets go, however that happens.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from everforge.engine.base import Image, Limits
from everforge.wire.errors import EverforgeError

from .sandbox import GvisorSandbox

log = logging.getLogger(__name__)

SHELVES_MAX = 4  # kinds of empty sandboxes kept: images and sizes used last
PAUSE_SECONDS = 1.0  # during a restore and right after it the processors belong to the machine that is woken
PAUSES_MAX = 3  # in a row, when one restore follows another
FAILED_PAUSE_SECONDS = 1.0
FAILURES_MAX = 3


@dataclass(frozen=True, slots=True)
class PoolSettings:
    empty: int = 2  # of each kind


@dataclass(frozen=True, slots=True)
class Kind:
    """What must agree for a snapshot to fit into an empty sandbox."""

    root: Path
    disk_mb: int
    processors: int

    @classmethod
    def of(cls, image: Image, limits: Limits) -> Kind:
        return cls(image.root, limits.disk_mb, math.ceil(limits.cpus))


@dataclass(slots=True)
class Shelf:
    make: Callable[[], Awaitable[GvisorSandbox]]
    count: int
    failures: int = 0  # in a row; after FAILURES_MAX it is left alone until it is wanted again
    ready: deque[GvisorSandbox] = field(default_factory=deque[GvisorSandbox])

    def take(self) -> GvisorSandbox | None:
        while self.ready:
            sandbox = self.ready.popleft()
            if not sandbox.is_over:
                return sandbox
        return None

    @property
    def lacking(self) -> int:
        return self.count - sum(not sandbox.is_over for sandbox in self.ready)


class Pool:
    """Shelves by key, filled by one task. The shelf used longest ago is given up when there are too many."""

    def __init__(self, shelves_max: int = SHELVES_MAX) -> None:
        self._shelves: OrderedDict[object, Shelf] = OrderedDict()
        self._shelves_max = shelves_max
        self._wanted = asyncio.Event()
        self._filled = asyncio.Event()
        self._filled.set()
        self._filler: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._filler = asyncio.create_task(self._fill(), name="sandboxes made ahead")

    async def close(self) -> None:
        if self._filler is not None:
            self._filler.cancel()
            await asyncio.gather(self._filler, return_exceptions=True)
        await self.clear()

    async def clear(self) -> None:
        await asyncio.gather(*(self._empty(key) for key in list(self._shelves)), return_exceptions=True)

    def take(self, key: object) -> GvisorSandbox | None:
        shelf = self._shelves.get(key)
        if shelf is None:
            return None
        self._want()
        return shelf.take()

    def want(self, key: object, count: int, make: Callable[[], Awaitable[GvisorSandbox]]) -> None:
        """Keep `count` of them from now on."""
        shelf = self._shelves.setdefault(key, Shelf(make, count))
        shelf.make, shelf.count, shelf.failures = make, count, 0
        self._shelves.move_to_end(key)
        self._want()

    def _want(self) -> None:
        self._wanted.set()
        self._filled.clear()

    async def filled(self) -> None:
        """Returns when nothing is lacking, or has been given up on."""
        await self._filled.wait()

    async def drop(self, key: object) -> None:
        """Those being made now are destroyed as soon as they are there."""
        await self._empty(key)

    async def _empty(self, key: object) -> None:
        shelf = self._shelves.pop(key, None)
        if shelf is not None:
            await asyncio.gather(*(sandbox.destroy() for sandbox in shelf.ready))

    async def _fill(self) -> None:
        while True:
            await self._wanted.wait()
            for _ in range(PAUSES_MAX):
                self._wanted.clear()
                await asyncio.sleep(PAUSE_SECONDS)
                if not self._wanted.is_set():
                    break
            while len(self._shelves) > self._shelves_max:
                await self._empty(next(iter(self._shelves)))
            while (shelf := self._first_lacking()) is not None:
                try:
                    sandbox = await shelf.make()
                except (EverforgeError, OSError) as e:
                    log.warning("a sandbox could not be made ahead: %s", e)
                    shelf.failures += 1
                    await asyncio.sleep(FAILED_PAUSE_SECONDS)
                    continue
                shelf.failures = 0
                shelf.ready.append(sandbox)
                if shelf not in self._shelves.values() or shelf.lacking < 0:
                    shelf.ready.remove(sandbox)
                    await sandbox.destroy()
            if not self._wanted.is_set():
                self._filled.set()

    def _first_lacking(self) -> Shelf | None:
        return next((shelf for shelf in reversed(self._shelves.values()) if shelf.lacking > 0 and shelf.failures < FAILURES_MAX), None)
