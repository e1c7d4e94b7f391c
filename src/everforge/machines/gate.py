"""Who talks with a guest beside its instructions passes here; whoever saves the machine closes it first: nothing is half said in a snapshot."""

from __future__ import annotations

import asyncio


class Gate:
    def __init__(self) -> None:
        self._passing = 0
        self._closed = False
        self._gone = False
        self._changed = asyncio.Event()

    async def enter(self) -> bool:
        """When it is open; False when it never will be again. Who passes is soon through: `leave`."""
        while self._closed and not self._gone:
            await self._change()
        if self._gone:
            return False
        self._passing += 1
        return True

    def leave(self) -> None:
        self._passing -= 1
        self._tell()

    async def close(self) -> None:
        """Nobody new, and nobody passing any more."""
        self._closed = True
        while self._passing and not self._gone:
            await self._change()

    def open(self) -> None:
        self._closed = False
        self._tell()

    def remove(self) -> None:
        """The sandbox behind it is gone, or let go of."""
        self._gone = True
        self._tell()

    async def _change(self) -> None:
        await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
