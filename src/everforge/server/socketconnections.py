"""WebSocket connections with limits that uvicorn's own do not have: of pieces, of answers to pings, of how long a client may take for anything."""

from __future__ import annotations

import asyncio
import logging
from asyncio.transports import BaseTransport
from collections import deque
from typing import Any, cast

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame

from everforge.wire.errors import TooLarge, TooMany

from .arrivals import Arrivals
from .connections import LINGER_SECONDS, TOO_LONG, Addresses, Patience, refusal
from .settings import ServerSettings
from .sockets import TOO_SLOW
from .turns import Turns

TOGETHER_BYTES_MAX = 64 * 1024
PIECE_BYTES = 512  # parsed at once: 85 empty frames, which take a millisecond
PIECE_BYTES_MAX = 16 * 1024  # of a long frame
FRAGMENTS_MAX = 16_384  # of one message: each takes memory, also when it is empty

log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # less than that would tell addresses, which may have a token in them


def limited_sockets(settings: ServerSettings, all_addresses: Addresses, all_arrivals: Arrivals) -> type[WebSocketsSansIOProtocol]:
    """The protocol class of a server with these settings."""

    class Limited(LimitedSocketProtocol):
        limits = settings
        addresses = all_addresses
        arrivals = all_arrivals
        turns = Turns()

    return Limited


class LimitedSocketProtocol(WebSocketsSansIOProtocol):
    limits: ServerSettings
    addresses: Addresses  # the connection was counted when it was made
    arrivals: Arrivals
    turns: Turns

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = log
        self.conn.debug = False  # would log headers
        self._arrival = self.arrivals.new()
        self._fragment_bytes = 0  # of the message that is in pieces
        self._whole: deque[int] = deque()  # bytes of each message that waits to be taken
        self._whole_bytes = 0  # of all of them
        self._deadline: asyncio.TimerHandle | None = None  # of the message that is arriving
        self._held = b""  # not parsed yet
        self._at = 0  # so much of it is
        self._piece_bytes = PIECE_BYTES
        self._in_turn = False  # to be parsed
        self._unsent_bytes = 0
        self._flushing: asyncio.Handle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._patience = Patience(cast(asyncio.Transport, transport), self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.end()
        self.addresses.leave(self.client)
        self._arrival.end()
        self._stop_waiting()
        super().connection_lost(exc)

    # --- what comes ----------------------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._held = self._held[self._at :] + data
        self._at = 0
        self._parse_soon()

    def _parse_soon(self) -> None:
        if self._held and not self._in_turn:
            self._in_turn = True
            self.turns.do(self._parse_piece)
        self._read_or_not()

    def _parse_piece(self) -> bool:
        """A little of what came: few frames fit into it. In the middle of a long one it may be more."""
        piece = self._held[self._at : self._at + self._piece_bytes]
        self._at += len(piece)
        if self._at >= len(self._held) or self.transport.is_closing():
            self._held, self._at = b"", 0
        if piece and not self.transport.is_closing():
            self._parse(piece)
            is_within_one = len(self.conn.reader.buffer) >= len(piece)
            self._piece_bytes = min(2 * self._piece_bytes, PIECE_BYTES_MAX) if is_within_one else PIECE_BYTES
        self._in_turn = bool(self._held) and not self.read_paused and self.writable.is_set()
        self._read_or_not()
        return self._in_turn

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:  # refused before anybody was asked
            self.transport.write(refusal(*TOO_LONG, TooLarge("the headers of the request are too long or too many")))
            self._close()
        self._count()

    def _read_or_not(self) -> None:
        """Nothing more is read while something is here, nor from a client that does not read: each of its pings would have to be answered."""
        if self.transport.is_closing():
            return
        if self._held or self.read_paused or not self.writable.is_set():
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _count(self) -> None:
        """What is held of this client's, and how long it may take for the rest."""
        unfinished = len(self.conn.reader.buffer) + self._fragment_bytes + len(self.frames)
        try:
            self._arrival.hold(unfinished + self._whole_bytes + len(self._held))
        except TooMany as e:
            self._fail(CloseCode.TRY_AGAIN_LATER, e.message)
            return
        reading = not self.read_paused and self.writable.is_set() and not self.transport.is_closing()
        if not unfinished or not reading:
            self._stop_waiting()  # nobody waits for what nobody reads
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.body_seconds, self._fail, TOO_SLOW, "a message did not arrive in time")

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._patience.begin(self.limits.write_seconds)
        self._read_or_not()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._patience.end()
            if not self.read_paused:
                self._parse_soon()
            self._count()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._whole_bytes -= self._whole.popleft()
            self._count()
        if not self.read_paused and self.writable.is_set():
            self._parse_soon()
        self._read_or_not()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        """Frames that come together go out together: a write to the network takes far longer than making a frame."""
        frame = cast(dict[str, Any], message)
        size = len(frame.get("text") or "")
        if size and self.handshake_complete and self.writable.is_set() and not (self.disconnected or self.close_sent):
            self._send_soon(frame.pop("text").encode())  # not to be held here while the client takes it
        else:
            await super().send(message)
        if size > TOGETHER_BYTES_MAX:
            await self.writable.wait()  # whoever sends much hears when it was taken
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # with a refusal

    def _send_soon(self, text: bytes) -> None:
        try:
            self.conn.send_text(text)
        except InvalidState as e:
            raise ClientDisconnected from e
        self._unsent_bytes += len(text)
        if self._unsent_bytes > TOGETHER_BYTES_MAX:
            self._flush()
        elif self._flushing is None:
            self._flushing = self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """What waits in `conn` goes out in its order, whoever asks for it first: a frame that closes the connection comes behind the others."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        self._unsent_bytes = 0
        if (frames := self.conn.data_to_send()) and not self.transport.is_closing():
            self.transport.write(b"".join(frames))

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= FRAGMENTS_MAX:
            self._fail(CloseCode.MESSAGE_TOO_BIG, "a message in too many pieces")
            return
        self._fragment_bytes += len(event.data)
        super().handle_cont(event)

    def handle_text(self, event: Frame) -> None:
        self._fragment_bytes = len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._fragment_bytes = len(event.data)
        super().handle_bytes(event)

    def send_receive_event_to_app(self) -> None:
        size, self._fragment_bytes = self._fragment_bytes, 0
        waiting = self.queue.qsize()
        super().send_receive_event_to_app()
        if self.queue.qsize() > waiting and not self.close_sent:
            self._whole.append(size)
            self._whole_bytes += size

    def _fail(self, code: int, reason: str) -> None:
        self._stop_waiting()
        if self.transport.is_closing() or self.close_sent:
            return
        if not self.handshake_complete:
            self._close()
            return
        self.frames, self._fragment_bytes = [], 0
        self.conn.fail(code, reason)
        self.handle_parser_exception()

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
