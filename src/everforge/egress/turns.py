"""How much of the event loop one machine's connections have in a turn, all of them together, before others have theirs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

TURN_SECONDS = 0.002
Done = TypeVar("Done")


class Turns:
    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._left_seconds = TURN_SECONDS
        self._is_ending = False
        self._renewed = asyncio.Event()

    async def do(self, work: Callable[[], Done]) -> Done:
        """For what may go on and on without a byte from outside of this process. Waits for the next turn of the loop where this one is used up."""
        while self._left_seconds <= 0:
            self._renewed.clear()
            await self._renewed.wait()
        if not self._is_ending:
            self._is_ending = True
            asyncio.get_running_loop().call_soon(self._renew)  # behind whatever else is to be done in this turn
        began = self._clock()
        try:
            return work()
        finally:
            self._left_seconds -= self._clock() - began

    def _renew(self) -> None:
        self._left_seconds = TURN_SECONDS
        self._is_ending = False
        self._renewed.set()
