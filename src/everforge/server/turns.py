"""Work that comes in heaps, a piece in each turn of the loop: whoever sends a thousand frames at once makes only itself wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

AT_ONCE = 8  # pieces in one turn

Work = Callable[[], bool]  # does one piece; True when there is more


class Turns:
    def __init__(self) -> None:
        self._waiting: deque[Work] = deque()
        self._running = False
        self._now = 0.0
        self._done = 0  # in this turn

    def do(self, work: Work) -> None:
        """Its first piece at once, unless others wait or enough was done in this turn; then in its turn."""
        loop = asyncio.get_running_loop()
        if (now := loop.time()) != self._now:
            self._now, self._done = now, 0
        if self._waiting or self._done >= AT_ONCE:
            self._waiting.append(work)
        else:
            self._done += 1
            if work():
                self._waiting.append(work)
        if self._waiting and not self._running:
            self._running = True
            loop.call_soon(self._turn)

    def _turn(self) -> None:
        for _ in range(min(len(self._waiting), AT_ONCE)):
            work = self._waiting.popleft()
            if work():
                self._waiting.append(work)
        self._running = bool(self._waiting)
        if self._running:
            asyncio.get_running_loop().call_soon(self._turn)
