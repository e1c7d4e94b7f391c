"""The files of a fake machine: a folder of this computer, and the real clerks at work in it, in threads."""

from __future__ import annotations

import asyncio
import io
import select
import shutil
import socket
import tarfile
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from everforge.guest import clerk
from everforge.guest.clerks import Clerks
from everforge.wire.messages import FileAsk, encode

END_SECONDS = 1.0  # for a clerk that was dropped to put its things away


class FakeFiles:
    def __init__(self, tell: Callable[[int, bytes], None], disk: bytes | None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="everforge-fake-home-"))
        self.unwritten = ()
        self.send_control = tell
        self._clerks = Clerks(self, self._start)
        self._threads: list[threading.Thread] = []
        self._watched: set[int] = set()
        self._loop = asyncio.get_running_loop()
        if disk is not None:
            with tarfile.open(fileobj=io.BytesIO(disk)) as tar:
                tar.extractall(self.home)  # our own; a filter, which Python 3.11.2 does not know, would be for those of strangers

    def _start(self, connection: socket.socket) -> None:
        theirs = connection.dup()  # the caller closes the one that it gave
        thread = threading.Thread(target=clerk.serve, args=(theirs, str(self.home)), name="fake clerk", daemon=True)
        self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()

    def ask(self, message: FileAsk) -> None:
        self._clerks.take(encode(message))
        self._serve([])

    def _serve(self, ready: list[int]) -> None:
        self._clerks.serve(ready)
        self._watch()

    def _watch(self) -> None:
        wanted = dict(self._clerks.wanted())
        for fd in self._watched - set(wanted):
            self._unwatch(fd)
        for fd, events in wanted.items():
            self._loop.add_reader(fd, self._serve, [fd])
            if events & select.POLLOUT:
                self._loop.add_writer(fd, self._serve, list[int]())
            else:
                self._loop.remove_writer(fd)
        self._watched = set(wanted)

    def _unwatch(self, fd: int) -> None:
        for remove in (self._loop.remove_reader, self._loop.remove_writer):
            with suppress(OSError):  # a clerk that was dropped has closed it
                remove(fd)

    def save(self) -> bytes:
        """Without what is only half there: its clerk is not saved with it."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(self.home, ".", filter=lambda info: None if info.name.endswith(".part") else info)
        return out.getvalue()

    def close(self) -> None:
        for fd in self._watched:
            if not self._loop.is_closed():
                self._unwatch(fd)
        self._watched.clear()
        self._clerks.drop_all()
        for thread in self._threads:
            thread.join(END_SECONDS)
        shutil.rmtree(self.home, ignore_errors=True)
