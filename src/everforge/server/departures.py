"""What is under way to clients: large answers and frames that nobody has taken yet. Together they may fill so much memory and no more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import fields, is_dataclass
from types import TracebackType
from typing import Any, cast

from everforge.wire.errors import TooMany, TooSlow

LARGE_BYTES = 64 * 1024  # what is no larger is not counted: whoever asks for little is served, whatever others ask for
PIECE_BYTES = 64 * 1024  # of a large answer is handed on at once; the next when the client has taken it
WAITING_TIMES = 4  # as much as may be under way may wait for that
ESCAPED_BYTES = 6  # of a character that is not ASCII


class Departures:
    """All of them."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0  # held now
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._encoding = asyncio.Lock()

    def take(self, size: int) -> Departure:
        """Room for so much. Raises TooMany, also while others wait: those came first."""
        if self._waiting or not self._has_room(size):
            raise TooMany("the server is sending as much as it can hold; ask again later")
        return Departure(self, size)

    async def room(self, size: int, seconds: float) -> Departure:
        """The same, in the order of asking, for what cannot be refused. Raises TooSlow when there was none for so long.

        And at once where too much waits already: that is in memory as well, and on the tape for whoever comes again.
        """
        if not self._waiting and self._has_room(size):
            return Departure(self, size)
        if sum(waiting for waiting, _ in self._waiting) + size > WAITING_TIMES * self.bytes_max:
            raise TooSlow("other clients do not take what they are sent, and too much waits already; ask again later")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as e:
            if turn.done() and not turn.cancelled():  # it was given, and nobody takes it
                self.change(-size)
            else:
                self._waiting = deque(one for one in self._waiting if one[1] is not turn)
                self.change(0)
            if isinstance(e, TimeoutError):
                raise TooSlow("other clients do not take what they are sent; ask again later") from None
            raise
        return Departure(self, size, is_held=True)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """To encode one of them, which takes tens of milliseconds: one in each turn of the loop, so that others are served in between."""
        async with self._encoding:
            yield
            await asyncio.sleep(0)

    def change(self, size: int) -> None:
        """So much more is held, or less; then it is the turn of who waited longest."""
        self.bytes += size
        while self._waiting and (self._waiting[0][1].done() or self._has_room(self._waiting[0][0])):
            wanted, turn = self._waiting.popleft()
            if not turn.done():  # else whoever waited is going away
                self.bytes += wanted
                turn.set_result(None)

    def _has_room(self, size: int) -> bool:
        return self.bytes == 0 or self.bytes + size <= self.bytes_max  # what is larger than all of it goes alone


class Departure:
    """One of them. What it holds is given back when it ends."""

    def __init__(self, departures: Departures, size: int, *, is_held: bool = False) -> None:
        self._departures = departures
        self._size = size
        if not is_held:
            departures.change(size)

    def hold(self, size: int) -> None:
        """It has become so large."""
        change, self._size = size - self._size, size
        self._departures.change(change)

    def end(self) -> None:
        self.hold(0)

    def __enter__(self) -> Departure:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()


def size_of(value: Any) -> int:
    """About what the texts of an answer take as JSON, known without making it."""
    if isinstance(value, str):
        return len(value) if value.isascii() else ESCAPED_BYTES * len(value)
    if isinstance(value, Mapping):
        return sum(size_of(item) for item in cast(Mapping[Any, Any], value).values())
    if isinstance(value, (list, tuple)):
        return sum(size_of(item) for item in cast(Sequence[Any], value))
    if is_dataclass(value):
        return sum(size_of(getattr(value, f.name)) for f in fields(value))
    return 0


async def in_pieces(parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The parts of a stream, none of them larger than a piece."""
    async with aclosing(parts):
        async for part in parts:
            for at in range(0, len(part), PIECE_BYTES):
                yield part[at : at + PIECE_BYTES]
