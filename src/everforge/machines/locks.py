"""Locks by name, for those who must not do the same thing at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Locks:
    """One at a time of each name. A lock lives as long as anybody holds it or waits for it, and not longer."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, id: str) -> AsyncGenerator[None]:
        lock, users = self._locks.get(id, (asyncio.Lock(), 0))
        self._locks[id] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(id)
            if users > 1:
                self._locks[id] = (lock, users - 1)
