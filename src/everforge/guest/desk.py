"""A clerk's side of one errand: what is asked comes in, what is told goes out, over a stream socket. Blocking, with an end to every wait."""

from __future__ import annotations

import select
import socket
import struct
from typing import Any, NamedTuple

from ..wire.errors import EverforgeError
from ..wire.files import PIECE_BYTES, Ask, Told, pack_json

PACKET = struct.Struct(">IBQ")  # length of the body, verb, number
STALL_SECONDS = 900.0  # nobody asks for anything: whoever began this has forgotten it


class Dropped(Exception):
    """Nobody wants it any more: leave nothing behind."""


class Packet(NamedTuple):
    verb: int
    number: int
    body: bytes


def pack(verb: int, number: int, body: bytes) -> bytes:
    return PACKET.pack(len(body), verb, number) + body


class Desk:
    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(STALL_SECONDS)
        self._connection = connection
        self._asked = connection.makefile("rb", 256 * 1024)
        self._credit = 0
        self.taken = 0  # bytes of data that were asked to be written

    def hear(self) -> Packet:
        try:
            head = self._asked.read(PACKET.size)
            if len(head) < PACKET.size:
                raise Dropped
            length, verb, number = PACKET.unpack(head)
            body = self._asked.read(length)
        except OSError as e:
            raise Dropped from e
        if len(body) < length or verb == Ask.DROP:
            raise Dropped
        return Packet(verb, number, body)

    def tell(self, verb: Told, body: bytes = b"", number: int = 0) -> None:
        try:
            self._connection.sendall(pack(verb, number, body))
        except OSError as e:
            raise Dropped from e

    def fail(self, error: EverforgeError) -> None:
        self.tell(Told.FAILED, pack_json({"code": error.code, "message": error.message}))

    def answer(self, verb: Told, value: Any) -> None:
        self.tell(verb, pack_json(value))

    def check(self) -> None:
        """In the middle of something long: is it still wanted?"""
        waiting = select.poll()
        waiting.register(self._connection, select.POLLRDHUP)
        if waiting.poll(0):
            raise Dropped

    # --- streams of bytes ----------------------------------------------------------------------------------------------------------------

    def credit(self) -> int:
        """How many bytes may be told now; waits until it is some."""
        while self._credit <= 0:
            packet = self.hear()
            if packet.verb == Ask.MORE:
                self._credit += packet.number
        return min(self._credit, PIECE_BYTES)

    def tell_data(self, data: bytes | memoryview) -> None:
        self._credit -= len(data)
        self.tell(Told.DATA, bytes(data))

    def take_data(self) -> bytes | None:
        """The next bytes to be written; None when that was all."""
        while True:
            packet = self.hear()
            if packet.verb == Ask.MORE:
                self.tell(Told.TAKEN, number=self.taken)
            elif packet.verb == Ask.FINISH:
                return None
            elif packet.verb == Ask.DATA and packet.number == self.taken:
                self.taken += len(packet.body)
                return packet.body
            else:
                raise Dropped  # not what our keeper would say


class Sink:
    """A file to write a stream into: it goes out as fast as it is asked for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self._held += data
        if len(self._held) >= PIECE_BYTES:
            self._send(PIECE_BYTES)
        return len(data)

    def flush(self) -> None:
        """Writers of archives flush whenever they like; we send whole pieces."""

    def finish(self) -> None:
        self._send(1)

    def _send(self, least: int) -> None:
        start = 0
        with memoryview(self._held) as view:
            while len(view) - start >= least:
                size = self._desk.credit()
                self._desk.tell_data(view[start : start + size])
                start += min(size, len(view) - start)
        del self._held[:start]


class Source:
    """A file to read a stream from."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: bytes = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, unless it ends before; all of it for a negative size is nothing that anybody should ask for."""
        pieces: list[bytes] = []
        while size > 0:
            if not self._held and not self._fill():
                break
            piece, self._held = self._held[:size], self._held[size:]
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def drain(self) -> None:
        while self._fill():
            pass

    def _fill(self) -> bool:
        if not self._ended:
            data = self._desk.take_data()
            self._ended = data is None
            self._held = b"" if data is None else data
        return not self._ended
