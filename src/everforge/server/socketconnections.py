"""WebSocket connections with limits that uvicorn's own do not have: of pieces, of answers to pings, of how long a client may take for anything."""

from __future__ import annotations

import asyncio
import logging
from asyncio.transports import BaseTransport
from typing import Any, cast

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from everforge.wire.errors import TooLarge

from .connections import LINGER_SECONDS, Patience, refusal
from .settings import ServerSettings

FRAGMENTS_MAX = 16_384  # of one message: each takes memory, also when it is empty

log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # less than that would tell addresses, which may have a token in them


def limited_sockets(settings: ServerSettings) -> type[WebSocketsSansIOProtocol]:
    """The protocol class of a server with these settings."""

    class Limited(LimitedSocketProtocol):
        limits = settings

    return Limited


class LimitedSocketProtocol(WebSocketsSansIOProtocol):
    limits: ServerSettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = log
        self.conn.debug = False  # would log headers

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._patience = Patience(cast(asyncio.Transport, transport), self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:  # refused before anybody was asked
            self.transport.write(refusal(431, b"Request Header Fields Too Large", TooLarge("the headers of the request are too long or too many")))
            self._close()

    def pause_writing(self) -> None:
        """Nothing is read from a client that does not read: each of its pings would have to be answered."""
        super().pause_writing()
        self._patience.begin(self.limits.write_seconds)
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._patience.end()
            if not self.read_paused:
                self.transport.resume_reading()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        if not self.writable.is_set() and not self.transport.is_closing():
            self.transport.pause_reading()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # with a refusal

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= FRAGMENTS_MAX:
            self.frames = []
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "a message in too many pieces")
            self.handle_parser_exception()
            return
        super().handle_cont(event)

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        if not self.disconnected:
            self._patience.begin(self.close_timeout + LINGER_SECONDS)

    def shutdown(self) -> None:
        super().shutdown()
        self._patience.begin(LINGER_SECONDS)

    def _close(self) -> None:
        self.transport.close()
        self._patience.begin(LINGER_SECONDS)
