"""The agent's side of the egress door: it listens, knocks when a program connects, and starts a porter when the door opens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from ..wire import mux
from ..wire.errors import ProtocolError
from ..wire.messages import Knock
from . import porter, processes
from .limits import GuestLimits
from .link import GuestLink

BACKLOG = 128
KNOCK_AGAIN_SECONDS = 5.0  # a knock is not kept for a server that comes later
END_SECONDS_MAX = 1.0  # for a porter to close its connections in good order


class Porch:
    def __init__(self, link: GuestLink, door_fd: int | None) -> None:
        self._link = link
        self._door_fd = door_fd
        self._listening: socket.socket | None = None
        self._porter: int | None = None
        self._ending_at: float | None = None  # it was told to end
        self._knocked_at: float | None = None

    def begin(self) -> None:
        """Without a door, or where the port is another's (a guest that is an ordinary process), there is no way out."""
        if self._door_fd is None:
            return
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", mux.PORT))
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            return
        listening.setblocking(False)
        self._listening = socket.socket(fileno=processes.private_copy(listening.fileno()))
        listening.close()

    # --- the loop ------------------------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> object:
        return self._porter, self._knocked_at

    def wanted(self) -> dict[int, int]:
        idle = self._listening is not None and self._porter is None and self._knocked_at is None
        return {self._listening.fileno(): select.POLLIN} if idle and self._listening is not None else {}

    @property
    def deadline(self) -> float | None:
        if self._ending_at is not None:
            return self._ending_at + END_SECONDS_MAX
        return None if self._knocked_at is None else self._knocked_at + KNOCK_AGAIN_SECONDS

    def serve(self, ready: list[int]) -> None:
        if self._listening is not None and self._listening.fileno() in ready and self._porter is None:
            self._knocked_at = time.monotonic()
            self._link.send_control(Knock.kind, b"{}")

    def mind(self, now: float) -> None:
        if self._ending_at is not None and now >= self._ending_at + END_SECONDS_MAX and self._porter is not None:
            processes.send_signal(self._porter, signal.SIGKILL)
            self._ending_at = now
        if self._knocked_at is not None and now >= self._knocked_at + KNOCK_AGAIN_SECONDS:
            self._knocked_at = None  # who waits is seen by the next poll

    # --- porters -------------------------------------------------------------------------------------------------------------------------

    def open(self, nonce: str, limits: GuestLimits) -> None:
        """The door has answered."""
        self._knocked_at = None
        if self._porter is not None or self._listening is None or self._door_fd is None:
            return
        with contextlib.suppress(OSError):  # no process to be had: whoever connects knocks again
            self._porter = self._start(self._listening, self._door_fd, _nonce(nonce), limits)

    def _start(self, listening: socket.socket, door_fd: int, nonce: bytes, limits: GuestLimits) -> int:
        keep = (listening.fileno(), door_fd)
        action: Callable[[], None] = lambda: porter.serve(listening, door_fd, nonce)  # noqa: E731
        return processes.fork_clerk(action, keep, limits, processes.PORTER_ID)

    def end(self) -> None:
        """Every connection is cut: the server that knew them is gone, or they belong to the machine that this one was copied from."""
        self._knocked_at = None
        if self._porter is not None and self._ending_at is None:
            processes.send_signal(self._porter, signal.SIGTERM)
            self._ending_at = time.monotonic()

    def reaped(self, pid: int) -> None:
        if pid == self._porter:
            self._porter = self._ending_at = None


def _nonce(text: str) -> bytes:
    try:
        nonce = bytes.fromhex(text)
    except ValueError as e:
        raise ProtocolError("the nonce of a door is not hexadecimal") from e
    if len(nonce) != mux.NONCE_BYTES:
        raise ProtocolError(f"the nonce of a door has {len(nonce)} bytes, not {mux.NONCE_BYTES}")
    return nonce


def door_fd() -> int | None:
    """The third descriptor, where it is one: a socket of the sandbox's own. It stays in its place too, for the last words of an agent that fails."""
    if not processes.is_init():
        return None
    fd = processes.private_copy(2)
    os.set_blocking(fd, False)
    return fd
