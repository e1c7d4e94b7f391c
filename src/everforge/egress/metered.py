"""A connection to the outside whose bytes count."""

from __future__ import annotations

from typing import Protocol

from .attempts import Attempt
from .bytestream import ByteStream, Stillness


class Counter(Protocol):
    """Each may wait until it is the bytes' turn, and raise OverLimit."""

    async def sent(self, attempt: Attempt, count: int) -> None: ...

    async def received(self, attempt: Attempt, count: int) -> None: ...


class Metered:
    """A ByteStream."""

    def __init__(self, stream: ByteStream, counter: Counter, attempt: Attempt, stillness: Stillness) -> None:
        self._stream = stream
        self._counter = counter
        self._attempt = attempt
        self._stillness = stillness

    async def read(self) -> bytes:
        data = await self._stream.read()
        self._stillness.moved()
        await self._counter.received(self._attempt, len(data))
        return data

    async def write(self, data: bytes) -> None:
        self._stillness.moved()
        await self._counter.sent(self._attempt, len(data))
        await self._stream.write(data)

    async def end(self) -> None:
        await self._stream.end()

    def cut(self) -> None:
        self._stream.cut()
