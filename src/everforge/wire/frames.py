"""Records on the link between a keeper and its guest: bytes in, messages out. No I/O.

A *record* is one write: a 16-byte header and at most `RECORD_BYTES_MAX` bytes in all (PIPE_BUF, so that a writer killed in the middle leaves no
half record) towards the guest, `GUEST_RECORD_BYTES_MAX` from it. A *message* is one record or several, all but the last flagged `MORE`.
Numbered records count from 1 within an epoch, each direction by itself; number 0 marks control records (attach, ack, hello), which are
never kept nor resent. A reader that has lost its place (a new server on an old pipe) skips everything up to a marker with a nonce that it chose
itself a moment ago, so that nothing printed earlier can imitate it.

Whatever bytes come in, `Decoder.feed` and `Assembler.add` give records or messages, or raise ProtocolError and nothing else.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from .errors import ProtocolError

MAGIC = 0xEF06
HEADER = struct.Struct(">HBBIQ")  # magic, kind, flags, payload length, number
MORE = 0x01

RECORD_BYTES_MAX = 4096  # PIPE_BUF on Linux: a write of this size to a pipe is atomic
GUEST_RECORD_BYTES_MAX = 65_536  # one default pipe buffer; the guest has a single writer, which is never killed half way
MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # above the largest result (settings.result_bytes_max) and the largest code
RECORD_WEIGHT = 4096
NUMBER_MAX = 2**63 - 1  # numbers also live in SQL integers

MARK = b"\x00EVERFORGE.MARK\x00"
NONCE_BYTES = 16


class Record(NamedTuple):
    kind: int
    number: int
    more: bool
    payload: bytes


class Message(NamedTuple):
    """`number` is that of its last record: acknowledging it acknowledges all of them."""

    kind: int
    number: int
    body: bytes


def encode_record(record: Record) -> bytes:
    return HEADER.pack(MAGIC, record.kind, MORE if record.more else 0, len(record.payload), record.number) + record.payload


def split(kind: int, body: bytes, first_number: int, record_bytes_max: int) -> list[Record]:
    """The records of one message, numbered from `first_number`; control messages (number 0) must fit in one record."""
    room = record_bytes_max - HEADER.size
    if len(body) > MESSAGE_BYTES_MAX:
        raise ProtocolError(f"a message of {len(body)} bytes is over the limit of {MESSAGE_BYTES_MAX}")
    if first_number == 0:
        if len(body) > room:
            raise ProtocolError(f"a control message of {len(body)} bytes does not fit in one record of {record_bytes_max}")
        return [Record(kind, 0, False, body)]
    pieces = [body[i : i + room] for i in range(0, len(body), room)] or [b""]
    last = len(pieces) - 1
    return [Record(kind, first_number + i, i < last, piece) for i, piece in enumerate(pieces)]


def mark(nonce: bytes) -> bytes:
    return MARK + nonce


class Decoder:
    """Bytes to records. With a nonce it first skips to the marker that carries it."""

    def __init__(self, record_bytes_max: int, nonce: bytes | None = None) -> None:
        self._record_bytes_max = record_bytes_max
        self._sought = None if nonce is None else mark(nonce)
        self._buffer = bytearray()

    @property
    def placed(self) -> bool:
        return self._sought is None

    def feed(self, data: bytes) -> Iterator[Record]:
        self._buffer += data
        if self._sought is not None:
            if not skip_to(self._sought, self._buffer):
                return
            self._sought = None
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                magic, kind, flags, length, number = HEADER.unpack_from(self._buffer, start)
                if magic != MAGIC or flags & ~MORE or number > NUMBER_MAX:
                    raise ProtocolError("a record's header is malformed")
                if HEADER.size + length > self._record_bytes_max:
                    raise ProtocolError(f"a record of {HEADER.size + length} bytes is over the limit of {self._record_bytes_max}")
                end = start + HEADER.size + length
                if len(self._buffer) < end:
                    return
                with memoryview(self._buffer) as view:  # one copy instead of two
                    payload = bytes(view[start + HEADER.size : end])
                start = end
                yield Record(kind, number, bool(flags & MORE), payload)
        finally:
            del self._buffer[:start]


def skip_to(sought: bytes, buffer: bytearray) -> bool:
    """Drops what comes before a marker, and it; False when it has not come yet, or not all of it."""
    at = buffer.find(sought)
    del buffer[: max(0, len(buffer) - len(sought) + 1) if at < 0 else at + len(sought)]
    return at >= 0


class Assembler:
    """Records to messages, with the numbers checked: the next one is taken, an old one is dropped (a resend), a gap is an error."""

    def __init__(self, last: int = 0) -> None:
        self.last = last  # number of the last record taken
        self._kind: int | None = None
        self._body = bytearray()  # one buffer, not a list of pieces: a million tiny pieces must not cost more than their bytes

    def add(self, record: Record) -> Message | None:
        if record.number == 0:
            if record.more:
                raise ProtocolError("a control message came in pieces")
            return Message(record.kind, 0, record.payload)
        if record.number <= self.last:
            return None
        if record.number != self.last + 1:
            raise ProtocolError(f"record {record.number} came after {self.last}: some are missing")
        if self._kind not in (None, record.kind):
            raise ProtocolError("a message changed its kind half way")
        if len(self._body) + len(record.payload) > MESSAGE_BYTES_MAX:
            raise ProtocolError(f"a message is over the limit of {MESSAGE_BYTES_MAX} bytes")
        self.last = record.number
        if not record.more and self._kind is None:
            return Message(record.kind, record.number, record.payload)
        self._kind = record.kind
        self._body += record.payload
        if record.more:
            return None
        body = bytes(self._body)
        self.forget_partial()
        return Message(record.kind, record.number, body)

    def forget_partial(self) -> None:
        """The writer was replaced: what it had begun will come again from the start."""
        self._kind, self._body = None, bytearray()


def weight(payload: bytes) -> int:
    """What a record takes of whoever reads it: hundreds of a few bytes each are as much work as a megabyte in one."""
    return RECORD_WEIGHT + len(payload)


class Outbox:
    """What was sent and not yet acknowledged, so that it can be sent again after a reconnect. Bounded by the caller through its `weight`."""

    def __init__(self, record_bytes_max: int) -> None:
        self._record_bytes_max = record_bytes_max
        self._kept: deque[tuple[int, bytes]] = deque()  # with their headers
        self.last = 0  # number of the last record made
        self.weight = 0

    def add(self, kind: int, body: bytes) -> list[bytes]:
        if len(body) <= self._record_bytes_max - HEADER.size:  # nearly always: one message, one record
            return [self._keep(self.last + 1, HEADER.pack(MAGIC, kind, 0, len(body), self.last + 1) + body)]
        encoded: list[bytes] = []
        for record in split(kind, body, self.last + 1, self._record_bytes_max):
            encoded.append(self._keep(record.number, encode_record(record)))
        return encoded

    def _keep(self, number: int, data: bytes) -> bytes:
        self._kept.append((number, data))
        self.last = number
        self.weight += weight(data)
        return data

    def acknowledge(self, upto: int) -> None:
        if upto > self.last:
            raise ProtocolError(f"record {upto} was acknowledged, but only {self.last} were sent")
        while self._kept and self._kept[0][0] <= upto:
            self.weight -= weight(self._kept.popleft()[1])

    def after(self, number: int) -> list[bytes]:
        """Everything still kept after `number`, to be sent again."""
        return [data for n, data in self._kept if n > number]
