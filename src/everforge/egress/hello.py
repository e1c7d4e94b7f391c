"""The beginning of TLS, as far as a door must read it: which server a client asks for, and whether it will ask again. No I/O.

Whatever bytes come in, each function gives an answer or raises NotTls and nothing else.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HELLO_BYTES_MAX = 16 * 1024 + 5
RECORDS_MAX = 16  # that one hello comes in; each time that more of it comes all of them are read again
RECORD_BYTES_MAX = 16 * 1024
_CHANGE_CIPHER, _HANDSHAKE, _APPLICATION = 20, 22, 23
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
# The "random" number of a server hello that is none, but asks for another client hello (RFC 8446, 4.1.3).
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
_SERVER_NAME, _HOST = 0, 0


class NotTls(Exception):
    """Whatever this is, it is not the beginning of TLS."""


class Asked(NamedTuple):
    name: str | None  # None: it names no server
    end: int  # of the hello: what comes behind it is something else


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise NotTls
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def part(self, length_size: int) -> _Reader:
        return _Reader(self.take(self.number(length_size)))


def server_name(data: bytes) -> Asked | None:
    """None: more bytes are needed. A client hello may come in several records."""
    hello = bytearray()
    at = 0
    for _ in range(RECORDS_MAX):
        if len(data) - at < 5:
            _check_beginning(data[at:])
            return None
        kind, major, length = struct.unpack_from(">BBxH", data, at)
        if kind != _HANDSHAKE or major != 3 or not 0 < length <= RECORD_BYTES_MAX:
            raise NotTls
        record = data[at + 5 : at + 5 + length]
        hello += record
        at += 5 + length
        if len(hello) >= 4 and (hello[0] != _CLIENT_HELLO or int.from_bytes(hello[1:4], "big") > HELLO_BYTES_MAX):
            raise NotTls
        if len(record) < length:
            return None
        if len(hello) >= 4 and len(hello) >= (size := 4 + int.from_bytes(hello[1:4], "big")):
            if len(hello) > size:
                raise NotTls  # no client says more in the same breath
            return Asked(_name_in(_Reader(bytes(hello[4:]))), at)
    raise NotTls


def asks_again(data: bytes) -> bool | None:
    """Does a server want another client hello? By the beginning of its answer; None: more bytes are needed."""
    said, at = b"", 0
    while len(said) < 4 + 2 + len(_RETRY):
        if len(data) - at < 5:
            return None if data[at : at + 1] in (b"", bytes([_HANDSHAKE])) else False
        kind, length = struct.unpack_from(">BxxH", data, at)
        if kind != _HANDSHAKE or at > HELLO_BYTES_MAX:
            return False
        said += data[at + 5 : at + 5 + length]
        at += 5 + length
    return said[0] == _SERVER_HELLO and said[6:38] == _RETRY


def before_hello(data: bytes) -> int | None:
    """How many bytes of something else are before a second hello: what was encrypted too early, a sign for old boxes on the way. None: more bytes
    are needed to tell."""
    if len(data) < 5:
        return None
    kind, length = struct.unpack_from(">BxxH", data)
    if kind == _HANDSHAKE:
        return 0
    if kind not in (_CHANGE_CIPHER, _APPLICATION) or length > RECORD_BYTES_MAX + 256:
        raise NotTls
    return 5 + length if len(data) >= 5 + length else None


def _check_beginning(data: bytes) -> None:
    if data and (data[0] != _HANDSHAKE or (len(data) > 1 and data[1] != 3)):
        raise NotTls


def _name_in(hello: _Reader) -> str | None:
    hello.take(2 + 32)  # version and random
    hello.part(1)  # session
    hello.part(2)  # ciphers
    hello.part(1)  # compressions
    if not hello.left:
        return None
    extensions = hello.part(2)
    found: str | None = None
    while extensions.left:
        kind, body = extensions.number(2), extensions.part(2)
        if kind == _SERVER_NAME:
            if found is not None:
                raise NotTls  # two of them: which one counts would be a matter of taste
            found = _host_in(body.part(2))
    return found


def _host_in(names: _Reader) -> str:
    kind, name = names.number(1), names.part(2)
    if kind != _HOST or names.left:
        raise NotTls
    try:
        return name.take(name.left).decode("ascii")
    except UnicodeDecodeError:
        raise NotTls from None
