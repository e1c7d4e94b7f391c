"""Everything the user's programs say on its way to the keeper: read in order, cut into lines, counted against the instruction's limit."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import time

from ..wire.errors import ProtocolError
from ..wire.messages import Outputs, Stream
from .capture import SILENCE_SECONDS, LineBuffer, Piece
from .limits import GuestLimits
from .link import GuestLink
from .processes import FIRST_PRIVATE_FD
from .ring import MAIN_THREAD, Said

PIPE_BYTES = 256 * 1024  # fewer turns of the loop for a flood
MID_PRINT_SECONDS = 0.01
THREADS_MAX = 256  # with an unfinished line each
STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")


def readable_bytes(fd: int) -> int:
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]


class Outlet:
    """Owns the pipes behind file descriptors 1 and 2. They outlive every interpreter: a daemon of the user's may still write to them."""

    def __init__(self, link: GuestLink, limits: GuestLimits) -> None:
        self._link = link
        self.instruction: int | None = None
        self.dropped_bytes = 0
        self.dropped_between_bytes = 0
        self._read_fds: list[int] = []
        self.write_fds: list[int] = []
        for _ in STREAMS:
            r, w = os.pipe()
            self._read_fds.append(fcntl.fcntl(r, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD))
            self.write_fds.append(fcntl.fcntl(w, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD))
            os.close(r)
            os.close(w)
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.write_fds[-1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        for fd in self._read_fds:
            os.set_blocking(fd, False)
        self._line_bytes_max = limits.line_bytes_max
        self._buffers: dict[tuple[int, int], LineBuffer] = {}  # by stream and thread, in the order of their last words
        self.holds = False  # some buffer has, or had, an unfinished line
        self._has_threads = False  # there are buffers of other threads than the main one
        self._output_bytes_max = limits.output_bytes_max
        self._left_bytes = limits.output_bytes_max

    @property
    def read_fds(self) -> list[int]:
        return self._read_fds

    def limit(self, limits: GuestLimits) -> None:
        self._output_bytes_max = limits.output_bytes_max
        self._line_bytes_max = limits.line_bytes_max
        for buffer in self._buffers.values():
            buffer.line_bytes_max = limits.line_bytes_max

    def begin(self, instruction: int) -> None:
        """From now on output is this instruction's, and the allowance is whole again."""
        self.flush()
        self.dropped_between_bytes += self.dropped_bytes
        self.instruction = instruction
        self._refill()

    def end(self) -> None:
        """From now on output is nobody's."""
        self.flush()
        self.instruction = None
        self.dropped_between_bytes = 0
        self._refill()

    def _refill(self) -> None:
        self.dropped_bytes = 0
        self._left_bytes = self._output_bytes_max

    def waiting(self) -> list[int]:
        """How much lies in each pipe now. Noted *before* the channel is drained: what was printed before it then comes before it."""
        return [readable_bytes(fd) for fd in self._read_fds]

    def read(self, waiting: list[int]) -> None:
        """As much as was noted, and nothing written later."""
        for index, count in enumerate(waiting):
            if not (count and self._is_mid_print(index, time.monotonic())):
                self._read_pipe(index, count, patient=True)

    def read_all(self) -> None:
        """Whatever lies in the pipes now, also in the middle of a line and when the keeper is behind: a pipe holds only so much."""
        for index, count in enumerate(self.waiting()):
            self._read_pipe(index, count, patient=False)

    def _read_pipe(self, index: int, count: int, *, patient: bool) -> None:
        while count > 0 and not (patient and self._link.full):
            try:
                data = os.read(self._read_fds[index], min(count, PIPE_BYTES))
            except BlockingIOError:
                return
            count -= len(data)
            self._feed(index, MAIN_THREAD, None, data, True)

    def _is_mid_print(self, stream: int, now: float) -> bool:
        """print() writes its text and its newline apart: between the two, a subprocess's line must wait a moment."""
        buffer = self._buffers.get((stream, MAIN_THREAD))
        return buffer is not None and buffer.mid_print and now < buffer.last_fed + MID_PRINT_SECONDS

    @property
    def mid_print(self) -> tuple[bool, ...]:
        now = time.monotonic()
        return tuple(self._is_mid_print(stream, now) for stream in range(len(STREAMS)))

    def readable_fds(self, now: float) -> list[int]:
        """The pipes that may be read now."""
        return [fd for stream, fd in enumerate(self._read_fds) if not self._is_mid_print(stream, now)]

    def take(self, said: Said, origin: int | None) -> None:
        """What the interpreter printed."""
        if said.stream >= len(STREAMS):
            raise ProtocolError(f"there is no stream {said.stream}")
        self._feed(said.stream, said.thread, origin, said.data, False)

    def _feed(self, stream: int, thread: int, origin: int | None, data: bytes, from_descriptor: bool) -> None:
        allowed = data[: self.allow(len(data))]
        if not allowed:
            return
        buffer = self._buffers.get((stream, thread))
        if buffer is None:
            if len(self._buffers) >= THREADS_MAX:
                self.flush()
            buffer = self._buffers[stream, thread] = LineBuffer(STREAMS[stream], self._line_bytes_max)
            self._has_threads = self._has_threads or thread != MAIN_THREAD
        self._tell(buffer.feed_bytes(allowed, origin, time.monotonic(), from_descriptor))
        self.holds = self.holds or buffer.holds

    def allow(self, count: int) -> int:
        """How many of `count` bytes may still be told; the rest is counted as dropped."""
        allowed = min(count, self._left_bytes)
        self._left_bytes -= allowed
        self.dropped_bytes += count - allowed
        return allowed

    def allow_whole(self, count: int) -> bool:
        """The same for what cannot be cut."""
        if count > self._left_bytes:
            self.dropped_bytes += count
            return False
        self._left_bytes -= count
        return True

    def flush(self) -> None:
        """Unfinished lines too. Threads that have nothing left to say are forgotten; the main one may be in the middle of a character."""
        if not (self.holds or self._has_threads):
            return
        self.holds = self._has_threads = False
        for key, buffer in list(self._buffers.items()):
            self._tell(buffer.flush())
            if key[1] != MAIN_THREAD:
                del self._buffers[key]

    def flush_silent(self, now: float) -> float | None:
        """Tells lines that have been waiting long enough for their newline; when to look again, or None."""
        if not self.holds:
            return None
        due: list[float] = []
        for (_, thread), buffer in self._buffers.items():
            if buffer.holds and buffer.last_fed + SILENCE_SECONDS <= now:
                self._tell(buffer.flush())
            elif buffer.holds:
                printing = thread == MAIN_THREAD and buffer.mid_print and now < buffer.last_fed + MID_PRINT_SECONDS
                due.append(buffer.last_fed + (MID_PRINT_SECONDS if printing else SILENCE_SECONDS))
        self.holds = bool(due)
        return min(due, default=None)

    def _tell(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            origin = piece.origin if piece.origin != self.instruction else None
            self._link.send(Outputs(self.instruction, piece.stream, piece.lines, piece.partial, origin))
