"""HTTP connections with the limits that uvicorn's own do not have: of what comes before a request, and of how long it may take to come."""

from __future__ import annotations

import asyncio
import json
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .limits import HEAD_BYTES_MAX, REQUEST_SECONDS

REFUSAL = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
TOO_SLOW = "the request did not arrive in time: send all of it at once"
TOO_LONG = f"the headers of a request have at most {HEAD_BYTES_MAX} bytes"


class Connection(HttpToolsProtocol):
    """Whoever sends a request byte by byte, or headers without end, takes nobody's place for long; a token is not needed for trying that."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0  # of the request: what has been read of its first line and its headers, also of those behind its body
    _loose_bytes = 0  # that came since, and are neither whole headers nor body

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn has it
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._loose_bytes += len(data)
        super().data_received(data)
        if self._loose_bytes > HEAD_BYTES_MAX:  # though nothing has come to its end in all of this
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._wait()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value) + len(": \r\n"))

    def on_headers_complete(self) -> None:
        self._in_head, self._loose_bytes = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._loose_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._loose_bytes = 0
        self._stop_waiting()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():  # else it has its answer
            super().send_400_response(msg)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse_head()
            raise ValueError(TOO_LONG)  # so that the parser reads no further

    def _refuse_head(self) -> None:
        self._refuse(431, b"Request Header Fields Too Large", "TooLarge", TOO_LONG)

    def _wait(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._refuse, 408, b"Request Timeout", "TooSlow", TOO_SLOW)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int, phrase: bytes, code: str, message: str) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if self._unanswered:
            body = json.dumps({"error": code, "error_description": message}).encode()
            self.transport.write(REFUSAL % (status, phrase, len(body), body))
        self.transport.close()

    @property
    def _unanswered(self) -> bool:
        """Is nothing said yet to this request, and nothing being said to the one before it?"""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or (cycle.response_complete if self._in_head else not cycle.response_started)
