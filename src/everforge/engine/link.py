"""The byte channel to a guest over two pipes."""

from __future__ import annotations

import asyncio
import os

from everforge.wire.errors import InvalidInput, SandboxLost
from everforge.wire.frames import RECORD_BYTES_MAX

READ_BYTES_MAX = 256 * 1024


class PipeLink:
    """Owns both descriptors. One reader and one writer at a time."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._waiting: set[asyncio.Future[None]] = set()
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    @property
    def is_closed(self) -> bool:
        return self._read_fd < 0

    async def receive(self) -> bytes:
        while not self.is_closed:
            try:
                return os.read(self._read_fd, READ_BYTES_MAX)
            except BlockingIOError:
                await self._ready(self._read_fd, writing=False)
            except OSError:
                break
        return b""

    async def send(self, record: bytes) -> None:
        # One write of at most PIPE_BUF bytes is taken whole or not at all, so a killed server leaves no half record.
        if len(record) > RECORD_BYTES_MAX:
            raise InvalidInput(f"a record of {len(record)} bytes is over the {RECORD_BYTES_MAX} that a pipe takes at once")
        while not self.is_closed:
            try:
                os.write(self._write_fd, record)
                return
            except BlockingIOError:
                await self._ready(self._write_fd, writing=True)
            except OSError as e:
                raise SandboxLost("the guest no longer reads") from e
        raise SandboxLost("the link is closed")

    async def _ready(self, fd: int, *, writing: bool) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        self._waiting.add(ready)
        (loop.add_writer if writing else loop.add_reader)(fd, _finish, ready)
        try:
            await ready
        finally:
            self._waiting.discard(ready)
            # After close() the number may be another file's already.
            if not self.is_closed:
                (loop.remove_writer if writing else loop.remove_reader)(fd)

    def close(self) -> None:
        if self.is_closed:
            return
        if self._waiting:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._read_fd)
            loop.remove_writer(self._write_fd)
            for ready in self._waiting:
                _finish(ready)
        os.close(self._read_fd)
        os.close(self._write_fd)
        self._read_fd = self._write_fd = -1


def _finish(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
