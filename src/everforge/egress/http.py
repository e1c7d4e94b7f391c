"""HTTP as the door reads and writes it: anew on each side, so that nothing that two parsers could understand in two ways gets through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import h11

from .bytestream import ByteStream
from .turns import Turns

HEAD_BYTES_MAX = 64 * 1024
HEADERS_MAX = 256  # of one message: reading some sixteen thousand takes as long as a hundred requests
Headers = Sequence[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"upgrade"}
)


class Malformed(Exception):
    """Not HTTP as it should be; a sentence that says why."""


class HttpSide:
    """One of the two conversations: with the program (as its server), or with the server (as its client)."""

    def __init__(self, stream: ByteStream, role: type[h11.SERVER] | type[h11.CLIENT], turns: Turns) -> None:
        self.stream = stream
        self._is_inside = role is h11.SERVER
        self._turns = turns
        self.state = h11.Connection(role, max_incomplete_event_size=HEAD_BYTES_MAX)

    def push(self, data: bytes) -> None:
        """Bytes that were read already."""
        self.state.receive_data(data)

    async def next(self) -> Any:
        """The next event. Raises Malformed, Cut."""
        try:
            while (event := await self._turns.do(self._next)) is h11.NEED_DATA:  # bytes that came together may be thousands of events
                self.state.receive_data(await self.stream.read())
        except h11.RemoteProtocolError as e:
            if self._is_inside:
                raise Malformed(f"the machine does not speak HTTP as it should: {e}") from e
            raise Malformed("the server does not speak HTTP as it should") from None  # the words of h11 are often the server's, and may hold a secret
        return event

    def _next(self) -> Any:
        if self.state.their_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._count_headers(self.state.trailing_data[0])
        return self.state.next_event()

    def _count_headers(self, head: bytes) -> None:
        """Before it is read."""
        ends = [at for at in (head.find(b"\n\n"), head.find(b"\n\r\n")) if at >= 0]
        if head.count(b"\n", 0, min(ends, default=len(head))) > HEADERS_MAX:
            raise Malformed(f"{'the machine' if self._is_inside else 'the server'} sends more than {HEADERS_MAX} headers at once")

    async def send(self, event: Any) -> None:
        try:
            data = cast("bytes | None", self.state.send(event))
        except h11.LocalProtocolError:
            raise Malformed(f"what {'the machine' if self._is_inside else 'the server'} would be sent is not HTTP as it should be") from None
        if data:
            await self.stream.write(data)

    @property
    def left(self) -> bytes:
        """What came behind the HTTP of a connection that is something else now."""
        return self.state.trailing_data[0]


def header(headers: Headers, name: bytes) -> bytes | None:
    """Raises Malformed when it is there twice: which one counts would be a matter of taste."""
    found = [value for key, value in headers if key == name]
    if len(found) > 1:
        raise Malformed(f"the header {name.decode('ascii')} is there twice")
    return found[0] if found else None


def check_framing(headers: Headers) -> None:
    """A body has one length."""
    if header(headers, b"transfer-encoding") is not None and header(headers, b"content-length") is not None:
        raise Malformed("a message has both a Content-Length and a Transfer-Encoding")


def is_upgrade(headers: Headers) -> bool:
    words = [word.strip().lower() for key, value in headers if key == b"connection" for word in value.split(b",")]
    return b"upgrade" in words and header(headers, b"upgrade") is not None


def is_websocket(headers: Headers) -> bool:
    """An upgrade to WebSockets, and to nothing else."""
    return is_upgrade(headers) and (header(headers, b"upgrade") or b"").strip().lower() == b"websocket"


def onward(headers: Headers, *, upgrade: bool = False) -> list[tuple[bytes, bytes]]:
    """What is meant for the other end, without what was meant for this hop alone."""
    named = {word.strip().lower() for key, value in headers if key == b"connection" for word in value.split(b",")}
    dropped = HOP_BY_HOP | (named - {b"host", b"content-length", b"transfer-encoding"})
    kept = [(key, value) for key, value in headers if key not in dropped]
    if upgrade:
        return [*kept, (b"connection", b"upgrade"), (b"upgrade", header(headers, b"upgrade") or b"")]
    return kept
