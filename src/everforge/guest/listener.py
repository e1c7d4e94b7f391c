"""A thread that hears the agent while the main one runs an instruction that waits for answers.

A signal could not do it: one that comes just before the main thread begins to wait is noticed only afterwards. It is not one of `threading`'s, so
that code which counts or joins threads does not meet it, and it is there only while somebody waits.
"""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import os
import select
import signal
from collections.abc import Callable

from . import channel
from .alone import Alone
from .channel import ChannelLost, ChildEnd, Frame

_exit = os._exit


class Listener:
    """Whoever calls it from the main thread has signals held: the channel has one reader at any time, and no frame is torn."""

    def __init__(self, end: ChildEnd, hear: Callable[[Frame], None], wanted: Callable[[], bool]) -> None:
        """`wanted` is asked before every wait; it ends when nobody waits, or when it is told to."""
        self._end = end
        self._hear = hear
        self._wanted = wanted
        self._stop_fd = -1  # of the one that listens
        self._thread = 0
        self._main = _thread.get_ident()
        self._changing = Alone()  # for moments in which nothing else is waited for: the main thread may be in the middle of anything
        self._gone = _thread.allocate_lock()  # held while one listens
        self._missed = False  # the main thread has left something to it

    @property
    def is_this_thread(self) -> bool:
        return _thread.get_ident() == self._thread

    def begin(self) -> None:
        """For somebody whom `wanted` knows of already: one that is about to end sees it, or is gone and another one begins."""
        with self._changing:
            if self._stop_fd == -1:
                stop_fd = _new_event(self._end.fd)
                try:
                    _thread.start_new_thread(self._listen, (stop_fd,))
                except BaseException:  # no thread to be had
                    os.close(stop_fd)
                    raise
                self._gone.acquire()
                self._stop_fd = stop_fd

    def end(self) -> None:
        """Returns when it no longer reads the channel."""
        with self._changing:
            if self._stop_fd != -1:
                with contextlib.suppress(OSError):  # closed by somebody: that ends it too
                    os.eventfd_write(self._stop_fd, 1)
        with self._gone:
            return

    def receive_aside(self) -> Frame | None:
        """What is there already, unless it hears that: then the main thread looks again when it has gone, for what came last."""
        with self._changing:
            self._missed = self._stop_fd != -1
            return None if self._missed else self._end.receive_now()

    def _listen(self, stop_fd: int) -> None:
        try:
            poll = select.poll()
            for fd in (self._end.fd, stop_fd):
                poll.register(fd, select.POLLIN)
            while self._goes_on():
                if stop_fd in [fd for fd, _ in poll.poll()]:
                    with self._changing:
                        self._leave()
                    return
                frame = self._end.receive()
                if frame is None:
                    _exit(0)
                self._hear(frame)
        except ChannelLost:
            _exit(channel.EXIT_CHANNEL_LOST)

    def _goes_on(self) -> bool:
        with self._changing:  # whoever has begun it is done with that
            self._thread = _thread.get_ident()
            if not self._wanted():
                self._leave()
            return self._stop_fd != -1

    def _leave(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._stop_fd)
        self._stop_fd, self._thread = -1, 0
        self._gone.release()
        if self._missed:
            signal.pthread_kill(self._main, channel.ORDERS_SIGNAL)


def _new_event(lowest: int) -> int:
    """Out of the way of descriptors that a program counts on."""
    made = os.eventfd(0, os.EFD_CLOEXEC)
    try:
        return fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, lowest)
    finally:
        os.close(made)
