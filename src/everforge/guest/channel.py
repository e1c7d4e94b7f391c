"""The private channel between the agent and the interpreter child: packets on a SOCK_SEQPACKET pair.

A packet is sent whole or not at all, so an exception that a user's signal handler raises in the middle of a send cannot tear a frame; and it is
numbered, so that a packet whose sending was interrupted *after* the kernel took it is dropped when it comes a second time.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import threading
from collections import deque
from typing import NamedTuple

from ..wire.errors import ProtocolError

HEADER = struct.Struct(">BBQ")  # kind, flags, number
POSITION = struct.Struct(">Q")  # of the output ring, before the body of a display, a call and an end
MORE = 0x01
PACKET_BYTES_MAX = 32_768  # well under a Unix socket's send buffer, in gVisor too
ROOM = PACKET_BYTES_MAX - HEADER.size

# from the interpreter
READY = 1
POKE = 2  # there is text in the ring
DISPLAY = 3
END = 4
RESEEDED = 5
COMPLETED = 6
CALL = 7  # of a function of the client's program
CALL_DROPPED = 8  # whoever waited for its answer was interrupted
# to the interpreter
RUN = 33
SETUP = 34
ENTROPY = 35
COMPLETE = 36
ANSWER = 37

EXIT_CHANNEL_LOST = 71  # the interpreter's exit status when it can no longer be heard
ORDERS_SIGNAL = signal.SIGRTMAX - 3  # "look at your channel now", for an interpreter in the middle of an instruction

_write = os.write  # the user's os.write is wrapped

NO_ORIGIN = -1
STREAMS = ("stdout", "stderr")


class Frame(NamedTuple):
    kind: int
    body: bytes


def pack(kind: int, body: bytes, first_number: int) -> list[bytes]:
    if len(body) <= ROOM:
        return [HEADER.pack(kind, 0, first_number) + body]
    pieces = [body[i : i + ROOM] for i in range(0, len(body), ROOM)]
    last = len(pieces) - 1
    return [HEADER.pack(kind, MORE if i < last else 0, first_number + i) + piece for i, piece in enumerate(pieces)]


class Unpacker:
    """Packets to frames. Raises ProtocolError for anything that the other side, if it is ours, would not send."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._last = 0
        self._kind = 0
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, packet: bytes) -> Frame | None:
        if len(packet) < HEADER.size:
            raise ProtocolError("a packet is shorter than its header")
        kind, flags, number = HEADER.unpack_from(packet)
        if number <= self._last:
            return None
        if number == self._last + 1 and not (flags or self._pieces) and len(packet) - HEADER.size <= self.frame_bytes_max:
            self._last = number
            return Frame(kind, packet[HEADER.size :])  # nearly always: one packet, one frame
        if number != self._last + 1 or flags & ~MORE or (self._pieces and kind != self._kind):
            raise ProtocolError("a packet's header is malformed")
        self._last = number
        self._kind = kind
        self._size += len(packet) - HEADER.size
        if self._size > self.frame_bytes_max:
            raise ProtocolError(f"a frame is over the limit of {self.frame_bytes_max} bytes")
        self._pieces.append(packet[HEADER.size :])
        if flags & MORE:
            return None
        body = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        self._pieces, self._size = [], 0
        return Frame(kind, body)


class ChannelLost(Exception):
    """The agent is gone, or somebody closed our descriptor."""


class ChildEnd:
    """The interpreter's end: blocking, usable from any thread, and dead in processes forked from the interpreter."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pid = os.getpid()
        self._number = 0
        self._waiting: deque[bytes] = deque()
        self._unpacker = Unpacker(64 * 1024 * 1024)
        self._lock = threading.RLock()

    @property
    def fd(self) -> int:
        return self._fd

    @property
    def ours(self) -> bool:
        """False in a process that the user forked: the channel belongs to its parent."""
        return os.getpid() == self._pid

    def forked(self) -> None:
        if self._pid != -1:  # once: a fork of a fork has nothing to close
            self._pid = -1
            self._lock = threading.RLock()
            os.close(self._fd)

    def send(self, kind: int, body: bytes) -> None:
        with self._lock:
            while True:
                number = self._number
                packets = pack(kind, body, number + 1)
                count = len(packets)
                if number == self._number:  # else a handler has sent something meanwhile; from here to the next call none can come
                    self._number += count
                    self._waiting.extend(packets)
                    break
            self.pump()

    def pump(self) -> None:
        """Sends what waits. A packet leaves the queue after the kernel has it: an interrupted send is repeated, never forgotten."""
        with self._lock:
            while self._waiting:
                packet = self._waiting[0]
                try:
                    _write(self._fd, packet)
                except OSError as e:
                    raise ChannelLost(str(e)) from e
                if self._waiting and self._waiting[0] is packet:  # a handler that printed may have sent it for us
                    self._waiting.popleft()

    def receive(self) -> Frame | None:
        """The next frame; None when the agent is gone."""
        while True:
            try:
                packet = os.read(self._fd, PACKET_BYTES_MAX)
            except OSError as e:
                raise ChannelLost(str(e)) from e
            if not packet:
                return None
            frame = self._unpacker.add(packet)
            if frame is not None:
                return frame

    def receive_now(self) -> Frame | None:
        """The next frame if it is there already."""
        try:
            ready = select.select([self._fd], [], [], 0)[0]
        except (OSError, ValueError) as e:
            raise ChannelLost(str(e)) from e
        return self.receive() if ready else None
