"""HTTP connections with limits that uvicorn's own do not have: of headers, of requests that wait, and of how long a client may take for anything."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from everforge import __version__
from everforge.wire.errors import EverforgeError, InvalidInput, TooLarge, TooMany, TooSlow

from .answers import RETRY_LATER_SECONDS, error_body, to_json
from .calls import new_request_id
from .heads import HeadWithBody
from .settings import ServerSettings
from .streams import Cut

PIPELINE_MAX = 16  # requests that wait behind one that is being answered; each takes a hundred times the memory of its bytes
VERSIONS = ("1.1", "1.0")
LINGER_SECONDS = 5.0  # for a client to finish sending what nobody reads any more, and to take the last of an answer
REFUSAL = (
    b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %s\r\nx-everforge-version: %s\r\n"
    b"retry-after: %d\r\nconnection: close\r\n\r\n%s"
)


class _ButNotCuts(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], Cut))


log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # what clients do wrong is told to them; a log that they could fill is of no use
log.addFilter(_ButNotCuts())


def limited(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """The protocol class of a server with these settings."""

    class Limited(LimitedProtocol):
        limits = settings

    return Limited


def refusal(status: int, phrase: bytes, error: EverforgeError) -> bytes:
    """An answer to what never became a request."""
    id = new_request_id()
    body = to_json(error_body(error, id))
    return REFUSAL % (status, phrase, len(body), id.encode(), __version__.encode(), RETRY_LATER_SECONDS, body)


class Patience:
    """With a client that does not take what it is sent: then there is no other way to be rid of it, since an orderly close waits for the same."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        self.end()
        self._timer = self._loop.call_later(seconds, self._transport.abort)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LimitedProtocol(HttpToolsProtocol):
    limits: ServerSettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = log
        self.access_log = False  # would tell addresses, which may have a token in them
        self._deadline: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_headers = True

    # --- the connection ------------------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._patience = Patience(transport, self.loop)
        if len(self.connections) > self.limits.connections_max:
            self._refuse(503, b"Service Unavailable", TooMany("the server has too many connections; try again later"))
            return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._patience.end()
        self._unset_keepalive_if_required()
        for cycle, _ in self.pipeline:  # never begun
            cycle.disconnected = True
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            if self._deadline is None:
                self._await_headers()  # the first bytes of another request
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > self.limits.header_bytes_max:
            self._refuse(431, b"Request Header Fields Too Large", TooLarge("the headers of the request are too long"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._patience.begin(self.limits.write_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._patience.end()

    # --- requests ------------------------------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_headers:  # what comes behind a body is nothing that anybody waits for
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_waiting()
        if self.parser is not None and self.parser.get_http_version() not in VERSIONS:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidInput("HTTP/1.1 is spoken here")
        if len(self.pipeline) >= PIPELINE_MAX:
            raise InvalidInput("too many requests at once on one connection")
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before and self.scope["method"] != "HEAD":
            self.cycle.transport = cast(asyncio.Transport, HeadWithBody(self.transport))

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_headers, self._header_bytes = True, 0

    def on_response_complete(self) -> None:
        unread = not self._in_headers and not self.pipeline
        super().on_response_complete()
        if unread:  # its answer did not wait for the end of the request: nor do we, for long
            self._unset_keepalive_if_required()
            self._deadline = self.loop.call_later(LINGER_SECONDS, self._close)
        elif self.transport.is_closing():
            self._patience.begin(LINGER_SECONDS)

    def handle_websocket_upgrade(self) -> None:
        self._stop_waiting()
        if self._answering:
            self._close()  # an answer is still being written to where the WebSocket would begin
            return
        super().handle_websocket_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Answered as if it had not asked; what comes then is nothing we understand."""
        if self._answering:
            self.cycle.keep_alive = False
        else:
            self._close()

    @property
    def _answering(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    # --- ends ----------------------------------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, b"Bad Request", InvalidInput("this is not HTTP as it is understood here"))

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            self._patience.begin(LINGER_SECONDS)

    def _await_headers(self) -> None:
        error = TooSlow("the headers of the request did not arrive in time")
        self._deadline = self.loop.call_later(self.limits.header_seconds, self._refuse, 408, b"Request Timeout", error)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int, phrase: bytes, error: EverforgeError) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if not self._answering or (not self.cycle.response_started and not self.pipeline):  # else it would stand in the middle of another answer
            self.transport.write(refusal(status, phrase, error))
            self._give_up_request()
        self._close()

    def _give_up_request(self) -> None:
        """Whoever waits for the rest of it, or would answer it, finds that nobody is there."""
        if self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
            self._patience.begin(LINGER_SECONDS)
