"""Many connections over one: what a guest's porter and the egress door of its machine say to each other. No I/O.

A frame is a 9-byte header (kind, stream, length) and its payload. The porter opens a stream for every connection that a program in the machine
makes; bytes then flow both ways, each side no further ahead than the credit that the other has given, so that neither ever has to hold more of a
stream than its window. What the streams mean (HTTP, SOCKS) is the door's business alone.

Whatever bytes come in, `Decoder.feed` gives frames or raises ProtocolError and nothing else. It begins behind a marker with a nonce that the door
has chosen: what an earlier porter, or one in another copy of the memory, had half written before is skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .errors import ProtocolError
from .frames import NONCE_BYTES, mark, skip_to

PORT = 3128  # on the guest's loopback
HEADER = struct.Struct(">BII")
CREDIT_BODY = struct.Struct(">I")
DATA_BYTES_MAX = 64 * 1024  # of one frame, so that streams take turns
OUT_WINDOW_BYTES = 128 * 1024  # of one stream towards the door, on its way or not yet taken: what a server must hold for a machine
IN_WINDOW_BYTES = 256 * 1024  # of one stream towards the program: what a machine must hold for itself
STREAMS_MAX = 128  # of one machine at once; further connections wait to be accepted

OPEN = 1  # by the porter: a program has connected
DATA = 2
CREDIT = 3  # so many more bytes may be sent
END = 4  # no more data from this side
RESET = 5  # no more of anything: cut

__all__ = [
    "CREDIT", "DATA", "END", "IN_WINDOW_BYTES", "NONCE_BYTES", "OPEN", "OUT_WINDOW_BYTES", "PORT", "RESET", "STREAMS_MAX",
    "Decoder", "Frame", "encode", "mark",
]  # fmt: skip


class Frame(NamedTuple):
    kind: int
    stream: int
    body: bytes


def encode(kind: int, stream: int, body: bytes | memoryview = b"") -> bytes:
    return HEADER.pack(kind, stream, len(body)) + body


def credit(stream: int, size_bytes: int) -> bytes:
    return encode(CREDIT, stream, CREDIT_BODY.pack(size_bytes))


def credit_of(frame: Frame) -> int:
    return CREDIT_BODY.unpack(frame.body)[0]


class Decoder:
    """Bytes to frames. With a nonce it first skips to the marker that carries it."""

    def __init__(self, nonce: bytes | None = None) -> None:
        self._sought = None if nonce is None else mark(nonce)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        if self._sought is not None:
            if not skip_to(self._sought, self._buffer):
                return
            self._sought = None
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                kind, stream, length = HEADER.unpack_from(self._buffer, start)
                _check(kind, length)
                end = start + HEADER.size + length
                if len(self._buffer) < end:
                    return
                with memoryview(self._buffer) as view:
                    body = bytes(view[start + HEADER.size : end])
                start = end
                yield Frame(kind, stream, body)
        finally:
            del self._buffer[:start]


_LENGTHS = {OPEN: (0, 0), DATA: (1, DATA_BYTES_MAX), CREDIT: (CREDIT_BODY.size, CREDIT_BODY.size), END: (0, 0), RESET: (0, 0)}


def _check(kind: int, length: int) -> None:
    least, most = _LENGTHS.get(kind, (1, 0))
    if not least <= length <= most:
        raise ProtocolError("a frame of the egress door is malformed")
