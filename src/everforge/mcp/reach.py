"""Whether the Everforge server still answers, for whoever waits for something from it: a client tries for minutes to come back, a model is told
soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from everforge import EverforgeError
from everforge.wire.errors import StillRunning, Uncertain, Unreachable

from .limits import ASK_SECONDS, LOST_SECONDS, RETRY_SECONDS

Ask = Callable[[], Awaitable[object]]


class Lost(Unreachable):
    """What was waited for goes on without us, or does not."""

    def __init__(self) -> None:
        super().__init__("the connection to the Everforge server was lost, and nobody has answered there since")


class Reach:
    """Of one client. Its streams say when one was cut, and when one goes on: that is cheap, but may be another call's, which is over meanwhile. So
    the server is asked before it is taken to be away."""

    def __init__(self) -> None:
        self._cut = asyncio.Event()

    def tell(self, connected: bool) -> None:
        """As the client says it."""
        self._cut.clear() if connected else self._cut.set()

    @asynccontextmanager
    async def watched(self, ask: Ask) -> AsyncGenerator[None]:
        """What is done in here ends as Lost when nobody answers any more. `ask` is any small question."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                watch = asyncio.create_task(self._watch(ask, limit))
                try:
                    yield
                finally:
                    watch.cancel()
                    await asyncio.wait([watch])
        except StillRunning as e:
            if self._cut.is_set() and not await _answers(ask, _now() + RETRY_SECONDS):
                raise Lost from e
            raise
        except TimeoutError as e:
            if limit.expired():
                raise Lost from e
            raise

    async def _watch(self, ask: Ask, limit: asyncio.Timeout) -> None:
        await self._gone(ask)
        if not limit.expired():
            limit.reschedule(_now())

    async def _gone(self, ask: Ask) -> None:
        while True:
            await self._cut.wait()
            until = _now() + LOST_SECONDS
            while self._cut.is_set():
                if await _answers(ask, until):
                    until = _now() + LOST_SECONDS
                elif _now() >= until:
                    return
                await asyncio.sleep(ASK_SECONDS)


async def _answers(ask: Ask, until: float) -> bool:
    """A refusal is an answer, too."""
    try:
        async with asyncio.timeout_at(until):
            await ask()
    except (TimeoutError, Unreachable, Uncertain):
        return False
    except EverforgeError as e:
        return e.http_status != 503
    return True


def _now() -> float:
    return asyncio.get_running_loop().time()
