"""The byte channel to a guest over two pipes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os

from everforge.wire.errors import InvalidInput, SandboxLost
from everforge.wire.frames import RECORD_BYTES_MAX

READ_BYTES_MAX = 256 * 1024
PIPE_BYTES = 1024 * 1024  # to the guest: room for a whole chunk of a file, in one go
WRITE_SECONDS = 60.0  # for the guest to read anything, whatever its code does; one that does not is given up, since nothing could be said to it
HELD_BYTES_MAX = READ_BYTES_MAX  # read and not yet received; then the guest waits


class PipeLink:
    """Owns both descriptors. One reader and one writer at a time.

    From the first `receive` on, the loop watches the pipe without being asked again each time, and what comes is held, up to a limit: asking anew
    for every message would cost two system calls and a turn of the loop.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._watching = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        self._arrival: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        _widen(write_fd)
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    @property
    def is_closed(self) -> bool:
        return self._read_fd < 0

    async def receive(self) -> bytes:
        while not self._held:
            if self._ended or self.is_closed:
                return b""
            self._watch()
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)  # together: what comes in small pieces is dealt with in large ones
        self._held.clear()
        self._held_bytes = 0
        self._watch()
        return data

    def _watch(self) -> None:
        if not self._watching and not self._ended and not self.is_closed and self._held_bytes < HELD_BYTES_MAX:
            self._watching = True
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._read_fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._read_fd, READ_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._held.append(data)
            self._held_bytes += len(data)
        else:
            self._ended = True
        if self._ended or self._held_bytes >= HELD_BYTES_MAX:
            self._unwatch()
        _finish(self._arrival)

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._read_fd)

    async def send(self, record: bytes) -> None:
        # One write of at most PIPE_BUF bytes is taken whole or not at all, so a killed server leaves no half record.
        if len(record) > RECORD_BYTES_MAX:
            raise InvalidInput(f"a record of {len(record)} bytes is over the {RECORD_BYTES_MAX} that a pipe takes at once")
        while not self.is_closed:
            try:
                os.write(self._write_fd, record)
                return
            except BlockingIOError:
                await self._until_writable()
            except OSError as e:
                raise SandboxLost("the guest no longer reads") from e
        raise SandboxLost("the link is closed, or the guest does not read")

    async def _until_writable(self) -> None:
        loop = asyncio.get_running_loop()
        self._writable = ready = loop.create_future()
        loop.add_writer(self._write_fd, _finish, ready)
        patience = loop.call_later(WRITE_SECONDS, self.close)
        try:
            await ready
        finally:
            patience.cancel()
            # After close() the number may be another file's already.
            if not self.is_closed:
                loop.remove_writer(self._write_fd)
            self._writable = None

    def close(self) -> None:
        if self.is_closed:
            return
        self._unwatch()
        if self._writable is not None:  # also when it is done, and whoever waits has not run since: the loop would never stop seeing room in it
            self._writable.get_loop().remove_writer(self._write_fd)
        os.close(self._read_fd)
        os.close(self._write_fd)
        self._read_fd = self._write_fd = -1
        _finish(self._arrival)
        _finish(self._writable)


def _widen(fd: int) -> None:
    """Files pass here, and what is in the pipe need not be waited for. Where the kernel allows no more, it stays as it is."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _finish(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
