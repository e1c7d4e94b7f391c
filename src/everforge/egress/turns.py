"""How much of the event loop one machine's connections have in a turn, all of them together, before others have theirs."""

from __future__ import annotations

import asyncio

EVENTS_A_TURN = 32  # of HTTP, each some 50 microseconds of work


class Turns:
    def __init__(self) -> None:
        self._left = EVENTS_A_TURN
        self._renewed = asyncio.Event()

    async def take(self) -> None:
        """Before each event; waits for the next turn of the loop where this one's are used up."""
        while not self._left:
            self._renewed.clear()
            await self._renewed.wait()
        if self._left == EVENTS_A_TURN:
            asyncio.get_running_loop().call_soon(self._renew)  # behind whatever else is to be done in this turn
        self._left -= 1

    def _renew(self) -> None:
        self._left = EVENTS_A_TURN
        self._renewed.set()
