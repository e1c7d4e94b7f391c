"""HTTP connections with limits that uvicorn's own do not have: how long a request's headers may take to come, and how long they may be."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .settings import ServerSettings

ANSWER = (
    b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
)  # fmt: skip
TOO_SLOW = b'{"code":"TooSlow","message":"the headers of the request did not arrive in time","retry":"later","id":null,"details":{}}'
TOO_LARGE = b'{"code":"TooLarge","message":"the headers of the request are too long","retry":"never","id":null,"details":{}}'
TOO_MANY = b'{"code":"TooManyConnections","message":"the server has too many connections; try again later","retry":"later","id":null,"details":{}}'


def limited(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """The protocol class of a server with these settings."""

    class Limited(LimitedProtocol):
        limits = settings

    return Limited


class LimitedProtocol(HttpToolsProtocol):
    limits: ServerSettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_headers = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections_max:
            self._refuse(503, b"Service Unavailable", TOO_MANY)
            return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            if self._deadline is None:
                self._await_headers()  # the first bytes of another request
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > self.limits.header_bytes_max and not self.transport.is_closing():
            self._refuse(431, b"Request Header Fields Too Large", TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_headers, self._header_bytes = True, 0

    def handle_websocket_upgrade(self) -> None:
        self._stop_waiting()
        super().handle_websocket_upgrade()

    def _await_headers(self) -> None:
        self._deadline = self.loop.call_later(self.limits.header_seconds, self._refuse, 408, b"Request Timeout", TOO_SLOW)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int, phrase: bytes, body: bytes) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(ANSWER % (status, phrase, len(body), body))
            self.transport.close()
