"""Bytes in both directions, whatever carries them, and passing them on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, Protocol

READ_BYTES = 64 * 1024


class Cut(Exception):
    """The other side is gone, or was cut off."""


class HungUp(Cut):
    """By the program in the machine, or with it: nothing has failed."""


class ByteStream(Protocol):
    async def read(self) -> bytes:
        """The next bytes, at most READ_BYTES or so; b"" at the end. Raises Cut."""
        ...

    async def write(self, data: bytes) -> None:
        """Waits until the other side has room. Raises Cut."""
        ...

    async def end(self) -> None:
        """No more from this side; the other may go on."""
        ...

    def cut(self) -> None:
        """At once, in both directions."""
        ...


class SocketStream:
    """A connection of ours to the outside. What was written is with the kernel: a cut behind it loses none of it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        writer.transport.set_write_buffer_limits(high=0)

    async def read(self) -> bytes:
        try:
            return await self._reader.read(READ_BYTES)
        except (OSError, EOFError) as e:
            raise Cut(str(e)) from e

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (OSError, RuntimeError) as e:
            raise Cut(str(e)) from e

    async def end(self) -> None:
        with contextlib.suppress(OSError, RuntimeError, NotImplementedError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    def cut(self) -> None:
        self._writer.transport.abort()


class Stillness:
    """How long nothing has moved over a connection."""

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._moved_at = asyncio.get_running_loop().time()

    def moved(self) -> None:
        self._moved_at = asyncio.get_running_loop().time()

    async def too_long(self) -> NoReturn:
        """Raises Cut when it has lasted too long."""
        loop = asyncio.get_running_loop()
        while (left := self._moved_at + self._seconds_max - loop.time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)
        raise Cut(f"nothing has moved for {self._seconds_max:g} s")


Paid = Callable[[int], Awaitable[None]]  # before so many bytes pass


class Relay:
    """Both directions until both have ended, or nothing has moved for too long."""

    def __init__(self, inside: ByteStream, outside: ByteStream, idle_seconds: float, sent: Paid, received: Paid) -> None:
        self._inside = inside
        self._outside = outside
        self._stillness = Stillness(idle_seconds)
        self._sent = sent
        self._received = received

    async def run(self) -> None:
        """Raises Cut when one side was cut; the caller cuts the other."""
        there = self._copy(self._inside, self._outside, self._sent)
        back = self._copy(self._outside, self._inside, self._received)
        await together(self._stillness, there, back)

    async def _copy(self, source: ByteStream, target: ByteStream, paid: Paid) -> None:
        while data := await source.read():
            self._stillness.moved()
            await paid(len(data))
            await target.write(data)
        await target.end()


async def together(stillness: Stillness, *ways: Coroutine[Any, Any, object]) -> None:
    """Until all have ended, one has failed, or nothing has moved for too long. Nothing of them is left when this returns or raises."""
    going = {asyncio.ensure_future(way) for way in ways}
    watch = asyncio.ensure_future(stillness.too_long())
    everything = [*going, watch]
    try:
        while going:
            done, _ = await asyncio.wait([*going, watch], return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
            going -= done
    finally:
        for one in everything:
            one.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
