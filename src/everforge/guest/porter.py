"""The porter: a process in the guest that carries the connections of its programs to the egress door of the machine, and decides nothing.

It listens on the guest's loopback, where `http_proxy` points, and passes bytes on over the sandbox's third descriptor. Who may connect where, and
what the bytes mean, is decided outside: whatever happens to this process, nobody gains more than what the door allows. It is there only while
somebody uses it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time
from typing import NoReturn

from ..wire import mux
from ..wire.errors import ProtocolError

IDLE_SECONDS = 60.0  # without a connection: then it ends, and the agent starts another when one comes
READ_BYTES = mux.DATA_BYTES_MAX
GRANT_BYTES = mux.IN_WINDOW_BYTES // 4  # taken by a program, before the door is told of it
UNWRITTEN_BYTES_MAX = 256 * 1024  # towards the door; above it no connection is read
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a close that cuts


class _Connection:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.credit_bytes = mux.OUT_WINDOW_BYTES  # that the door takes
        self.unsent = bytearray()  # to the program
        self.taken_bytes = 0  # by the program, and the door not told
        self.door_ended = False
        self.program_ended = False
        self.shut = False

    @property
    def over(self) -> bool:
        return self.program_ended and self.shut

    def events(self, door_has_room: bool) -> int:
        reads = not self.program_ended and self.credit_bytes > 0 and door_has_room
        return (select.POLLIN if reads else 0) | (select.POLLOUT if self.unsent else 0)

    def write(self) -> None:
        """What the program takes now."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                sent = self.sock.send(self.unsent)
                del self.unsent[:sent]
                self.taken_bytes += sent
        if self.door_ended and not self.unsent and not self.shut:
            self.shut = True
            self.sock.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """The program must not take what it has for all there was: it sees a reset."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.sock.close()

    def leave(self) -> None:
        """Also where it was restored: in gVisor whoever waits at the other end of such a connection notices a shutdown, but no reset."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.cut()


class Porter:
    def __init__(self, listening: socket.socket, door_fd: int, nonce: bytes) -> None:
        self._listening = listening
        self._door_fd = door_fd
        self._decoder = mux.Decoder(nonce)
        self._unwritten = bytearray(mux.mark(nonce))
        self._connections: dict[int, _Connection] = {}
        self._last = 0
        self._idle_since = time.monotonic()

    def serve(self) -> None:
        """Until nobody has used it for a while, the door is gone, or it is told to end."""
        try:
            while self._connections or time.monotonic() < self._idle_since + IDLE_SECONDS:
                self._turn()
        except (OSError, ProtocolError):
            pass  # no door, no connections: the next porter begins anew
        finally:
            for connection in self._connections.values():
                connection.leave()

    def _turn(self) -> None:
        poll = select.poll()
        room = len(self._unwritten) < UNWRITTEN_BYTES_MAX
        poll.register(self._door_fd, select.POLLIN | (select.POLLOUT if self._unwritten else 0))
        if len(self._connections) < mux.STREAMS_MAX:
            poll.register(self._listening, select.POLLIN)
        streams = {connection.sock.fileno(): stream for stream, connection in self._connections.items()}
        for fd, stream in streams.items():
            # One that waits for nothing is left out: poll tells of errors and hang-ups unasked, again and again.
            if events := self._connections[stream].events(room):
                poll.register(fd, events)
        for fd, _ in poll.poll(1000 if not self._connections else None):
            if fd == self._door_fd:
                self._serve_door()
            elif fd == self._listening.fileno():
                self._accept()
            elif streams[fd] in self._connections:
                self._serve(streams[fd], self._connections[streams[fd]])

    def _accept(self) -> None:
        try:
            sock, _ = self._listening.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last += 1
        self._connections[self._last] = _Connection(sock)
        self._unwritten += mux.encode(mux.OPEN, self._last)

    # --- a program's side ----------------------------------------------------------------------------------------------------------------

    def _serve(self, stream: int, connection: _Connection) -> None:
        try:
            self._write(stream, connection)
            self._read(stream, connection)
        except OSError:
            self._unwritten += mux.encode(mux.RESET, stream)
            self._drop(stream)
            return
        self._bury(stream, connection)

    def _read(self, stream: int, connection: _Connection) -> None:
        if connection.program_ended or connection.credit_bytes <= 0 or len(self._unwritten) >= UNWRITTEN_BYTES_MAX:
            return
        try:
            data = connection.sock.recv(min(READ_BYTES, connection.credit_bytes))
        except BlockingIOError:
            return
        if data:
            connection.credit_bytes -= len(data)
            self._unwritten += mux.encode(mux.DATA, stream, data)
        else:
            connection.program_ended = True
            self._unwritten += mux.encode(mux.END, stream)

    def _write(self, stream: int, connection: _Connection) -> None:
        connection.write()
        if connection.taken_bytes >= GRANT_BYTES:
            self._unwritten += mux.credit(stream, connection.taken_bytes)
            connection.taken_bytes = 0

    def _bury(self, stream: int, connection: _Connection) -> None:
        if connection.over:
            self._connections.pop(stream).sock.close()
            self._idle_since = time.monotonic()

    def _drop(self, stream: int) -> None:
        if connection := self._connections.pop(stream, None):
            connection.cut()
            self._idle_since = time.monotonic()

    # --- the door's side -----------------------------------------------------------------------------------------------------------------

    def _serve_door(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._door_fd, 256 * 1024)
            if not data:
                raise ConnectionError("the door is gone")
            for frame in self._decoder.feed(data):
                self._take(frame)
        with contextlib.suppress(BlockingIOError):
            while self._unwritten:
                del self._unwritten[: os.write(self._door_fd, self._unwritten)]

    def _take(self, frame: mux.Frame) -> None:
        connection = self._connections.get(frame.stream)
        if connection is None:
            return  # it was cut here meanwhile
        if frame.kind == mux.RESET:
            self._drop(frame.stream)
            return
        if frame.kind == mux.CREDIT:
            connection.credit_bytes += mux.credit_of(frame)
        elif frame.kind == mux.DATA:
            connection.unsent += frame.body
        elif frame.kind == mux.END:
            connection.door_ended = True
        self._serve(frame.stream, connection)


def serve(listening: socket.socket, door_fd: int, nonce: bytes) -> None:
    signal.signal(signal.SIGTERM, _end)
    Porter(listening, door_fd, nonce).serve()


def _end(_number: int, _frame: object) -> NoReturn:
    raise SystemExit
