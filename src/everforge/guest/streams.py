"""The interpreter's sys.stdout and sys.stderr: text goes into the ring that the agent reads, in order and tagged with its thread.

File descriptors 1 and 2 are pipes of their own, for subprocesses and C code. Before text is put into the ring they must be empty, so that both
arrive in the order in which they were written; that is looked at every fifth of a millisecond at most, and after every os.write to them.
"""

from __future__ import annotations

import _thread
import codecs
import fcntl
import io
import os
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import channel as wire
from . import ring
from .channel import ChildEnd

DRAIN_SECONDS_MAX = 0.05  # a background process may be flooding the pipe: then order is no longer ours to keep
LOOK_SECONDS = 0.0002
_NEWLINE = ord("\n")

_MAIN_SEGMENTS = ((0, ring.MAIN_THREAD, wire.NO_ORIGIN), (1, ring.MAIN_THREAD, wire.NO_ORIGIN))

_write = os.write  # the user's os.write is wrapped


class Spool:
    """Both streams, all threads, one order."""

    def __init__(self, channel: ChildEnd, writer: ring.Writer, pipes: tuple[int, int], origin: Callable[[], int]) -> None:
        self._channel = channel
        self._ring = writer
        self._pipes = pipes
        self._origin = origin
        self._lock = threading.RLock()
        self._main = _thread.get_ident()
        self._looked = 0.0
        self._line_ended = True
        self.forked = False
        os.register_at_fork(after_in_child=self._after_fork)

    def put(self, stream: int, data: bytes) -> None:
        thread = _thread.get_ident()
        segment = _MAIN_SEGMENTS[stream] if thread == self._main else (stream, thread, self._origin())
        with self._lock:
            # Not in the middle of a line: there the agent waits for us, so that nothing comes between print's text and its newline.
            if self._looked == 0.0 or (self._line_ended and time.monotonic() - self._looked > LOOK_SECONDS):
                self.drain_pipes()
            self._line_ended = data[-1] == _NEWLINE
            taken = self._ring.write(segment, data)
            if taken != len(data):
                self._wait_for_room(segment, memoryview(data)[taken:])
            if not self._ring.reader_awake:
                self._channel.send(wire.POKE, b"")

    def _wait_for_room(self, segment: tuple[int, int, int], data: memoryview) -> None:
        """The ring is full, or this is more than it holds: the agent is told, and whoever writes waits."""
        pause = 0.0002
        while len(data):
            taken = self._ring.write(segment, data)
            if taken:
                data, pause = data[taken:], 0.0002
                continue
            self._channel.send(wire.POKE, b"")
            time.sleep(pause)
            pause = min(pause * 2, 0.01)

    def send(self, kind: int, body: bytes) -> None:
        """A frame in its place among the text: it says how far the ring must be read before it."""
        self._channel.send(kind, wire.POSITION.pack(self._ring.position) + body)

    def drain_pipes(self) -> None:
        """Waits until the agent has read what programs wrote to descriptors 1 and 2 before now."""
        if any(map(_readable_bytes, self._pipes)):
            deadline = time.monotonic() + DRAIN_SECONDS_MAX
            pause = 0.00005
            while any(map(_readable_bytes, self._pipes)) and time.monotonic() < deadline:
                time.sleep(pause)
                pause = min(pause * 2, 0.002)
        self._looked = time.monotonic()

    def pipes_written(self) -> None:
        """Something has just been written to a descriptor: the next text looks for it."""
        self._looked = 0.0

    def _after_fork(self) -> None:
        """In a process that the user forked: the ring and the channel are the parent's, so text goes to the file descriptors."""
        self.forked = True
        self._lock = threading.RLock()
        self._channel.forked()


class OutStream(io.TextIOBase):
    def __init__(self, spool: Spool, number: int) -> None:
        self._spool = spool
        self._number = number
        self._name = f"<{wire.STREAMS[number]}>"
        self._closed = False
        self._held = b""
        self.buffer = ByteStream(self)

    # The parts of a text stream that programs look at.
    mode = "w"
    line_buffering = True
    write_through = True
    newlines = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "utf-8"

    @property
    def errors(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "replace"

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    def reopen(self) -> None:
        self._closed = False

    def __del__(self) -> None:  # the base class would close it
        pass

    def fileno(self) -> int:
        return self._number + 1

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def reconfigure(self, **_options: Any) -> None:
        pass

    def write(self, text: str, /) -> int:
        if self._closed:
            raise ValueError("I/O operation on closed file.")
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode("utf-8", "replace")
        if self._spool.forked:
            self._held += data
            if b"\n" in data:
                self.flush()
        elif data:
            self._spool.put(self._number, data)
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing waits here, except in processes that the user forked: those write whole lines to the descriptor."""
        if self._closed:
            raise ValueError("I/O operation on closed file.")
        held, self._held = self._held, b""
        while held:
            held = held[_write(self._number + 1, held) :]


class ByteStream(io.BufferedIOBase):
    """`sys.stdout.buffer`: bytes in order with the text."""

    def __init__(self, text: OutStream) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def raw(self) -> ByteStream:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self

    @property
    def name(self) -> str:
        return self._text.name

    def write(self, data: Any, /) -> int:
        plain = bytes(data)
        self._text.write(self._decoder.decode(plain))
        return len(plain)

    def flush(self) -> None:
        self._text.flush()

    def fileno(self) -> int:
        return self._text.fileno()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def __del__(self) -> None:
        pass


def order_descriptor_writes(spool: Spool) -> None:
    """os.write to 1 and 2 goes around the streams: what is printed next must not overtake it."""
    write = os.write

    def ordered_write(fd: int, data: Any, /) -> int:
        written = write(fd, data)
        if fd == 1 or fd == 2:
            spool.pipes_written()
        return written

    ordered_write.__name__ = ordered_write.__qualname__ = "write"
    ordered_write.__doc__ = write.__doc__
    os.write = ordered_write


def _readable_bytes(fd: int) -> int:
    try:
        return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
    except OSError:
        return 0
