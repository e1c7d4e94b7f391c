"""Prints and remembers, so that nothing can fall between the two.

Between a write and the note that it was done there is always a moment, and whoever reads the line may kill its writer right then. So the two are done
by a small process of their own: whoever kills this one does not kill that, which ends the line that it has in hand and then itself.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Sequence

from ..answers import NotWritten
from .cursorfile import CursorFile

STDOUT = 1
END_SECONDS = 10.0  # for the last lines to be taken by whoever reads them
_BATCH = struct.Struct("<I")  # lines in it
_LINE = struct.Struct("<q?I")  # cursor, unfinished, bytes


class Scribe:
    """Made before there are threads or connections, of which the other process would keep copies."""

    def __init__(self, file: CursorFile) -> None:
        self._end, end = socket.socketpair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            status = errno.EIO
            try:
                self._end.close()
                status = _write_all(end, file, parent)
            finally:
                os._exit(status)
        end.close()

    def write(self, lines: Sequence[tuple[int, bool, bytes]]) -> None:
        """Returns when they are written and remembered."""
        parts = [_BATCH.pack(len(lines))]
        for cursor, open, data in lines:
            parts += (_LINE.pack(cursor, open, len(data)), data)
        try:
            self._end.sendall(b"".join(parts))
            done = self._end.recv(1)
        except (BrokenPipeError, ConnectionResetError):
            done = b""
        if not done:
            raise NotWritten(self._why())

    def _why(self) -> OSError:
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        number = status if status > 0 else errno.EIO
        return OSError(number, os.strerror(number))

    def close(self) -> None:
        self._end.close()
        deadline = time.monotonic() + END_SECONDS
        while self._pid and os.waitpid(self._pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.005)


def _write_all(end: socket.socket, file: CursorFile, parent: int) -> int:
    """The other process. 0, or the number of the error that ended it."""
    os.setsid()  # out of the reach of Ctrl-C, and of a kill of the whole group
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        with end.makefile("rb") as source:
            while head := source.read(_BATCH.size):
                for _ in range(_BATCH.unpack(head)[0]):
                    cursor, open, size = _LINE.unpack(source.read(_LINE.size))
                    data = source.read(size)
                    if len(data) < size or os.getppid() != parent:
                        return 0
                    _write(data)
                    file.remember(cursor, open)
                end.send(b"+")
    except OSError as e:
        return e.errno or errno.EIO
    except struct.error:  # cut in the middle of a batch: nothing of the rest is printed, nor remembered
        pass
    return 0


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(STDOUT, left) :]
        except BlockingIOError:  # somebody who shares it has made it so
            select.select([], [STDOUT], [])
