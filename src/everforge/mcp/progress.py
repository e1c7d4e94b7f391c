"""How far a call is, told to a client that asked: at most a few times a second, and often enough that it does not take us for dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from .limits import HEARTBEAT_SECONDS, PROGRESS_CHARACTERS, PROGRESS_SECONDS
from .visible import line

Send = Callable[[float, str | None], Awaitable[None]]
STEP = 0.001  # what is told must grow, also when nothing happened


class Progress:
    """`send` is None where nobody asked."""

    def __init__(self, send: Send | None = None, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._send = send
        self._heartbeat_seconds = heartbeat_seconds
        self._news = asyncio.Event()
        self._count = 0.0
        self._last: str | None = None
        self._told = 0.0

    def line(self, text: str) -> None:
        """One more of output."""
        self.tell(self._count + 1, text)

    def tell(self, count: float, message: str) -> None:
        if text := message.strip():
            self._last = line(text[:PROGRESS_CHARACTERS])
        self._count = count
        self._news.set()

    @asynccontextmanager
    async def beating(self) -> AsyncGenerator[None]:
        """While something takes its time."""
        if self._send is None:
            yield
            return
        beat = asyncio.create_task(self._beat(self._send))
        try:
            yield
        finally:
            beat.cancel()
            await asyncio.wait([beat])

    async def _beat(self, send: Send) -> None:
        while True:
            with suppress(TimeoutError):  # nothing happened, and that is told, too
                async with asyncio.timeout(self._heartbeat_seconds):
                    await self._news.wait()
            self._news.clear()
            self._told = max(self._count, self._told + STEP)
            await send(self._told, self._last)
            await asyncio.sleep(PROGRESS_SECONDS)
