"""HTTP connections with limits that uvicorn's own do not have: of headers, of requests that wait, and of how long a client may take for anything."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from everforge import __version__
from everforge.accounts.rates import customer
from everforge.wire.errors import EverforgeError, InvalidInput, TooLarge, TooMany, TooSlow

from .answers import RETRY_LATER_SECONDS, error_body, to_json
from .calls import new_request_id
from .heads import HeadWithBody
from .settings import ServerSettings
from .streams import Cut

PIPELINE_MAX = 128  # requests that wait behind one that is being answered; each takes a hundred times the memory of its bytes
PIECE_BYTES = 2048  # parsed at once of what may be many requests, before a look at how many wait: 113 at most
HELD_BYTES_MAX = 1024 * 1024  # of requests that wait behind one that is being answered
HEADERS_MAX = 128  # each takes a hundred times the memory of its bytes, and some time
TOO_LONG = (431, b"Request Header Fields Too Large")
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


class Addresses:
    """How many connections each client address has; IPv6 by what one customer gets."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def enter(self, client: tuple[str, int] | None) -> int:
        """One more; how many it has now."""
        who = customer(client[0] if client else "")
        self._open[who] += 1
        return self._open[who]

    def leave(self, client: tuple[str, int] | None) -> None:
        who = customer(client[0] if client else "")
        self._open[who] -= 1
        if self._open[who] <= 0:
            del self._open[who]


def limited(settings: ServerSettings, all_addresses: Addresses) -> type[HttpToolsProtocol]:
    """The protocol class of a server with these settings."""

    class Limited(LimitedProtocol):
        limits = settings
        addresses = all_addresses

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
    addresses: Addresses

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = log
        self.access_log = False  # would tell addresses, which may have a token in them
        self._deadline: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_headers = True
        self._held = b""  # not parsed yet: requests that came before are to be answered first
        self._deaf = False  # what comes now is not HTTP, or nothing that we understand
        self._mistake: EverforgeError = InvalidInput("this is not HTTP as it is understood here")

    # --- the connection ------------------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._patience = Patience(transport, self.loop)
        of_this_address = self.addresses.enter(self.client)
        if len(self.connections) > self.limits.connections_max:
            self._refuse(503, b"Service Unavailable", TooMany("the server has too many connections; try again later"))
            return
        if of_this_address > self.limits.connections_per_address_max:
            self._refuse(503, b"Service Unavailable", TooMany("there are too many connections from this address; close some, or try again later"))
            return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self.addresses.leave(self.client)
        self._stop_waiting()
        self._patience.end()
        self._unset_keepalive_if_required()
        for cycle, _ in self.pipeline:  # never begun
            cycle.disconnected = True
        self.pipeline.clear()
        self._held = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._held:
            self._held += data
            self.flow.pause_reading()  # an answer that listens for the end of the connection has resumed it
            if len(self._held) > HELD_BYTES_MAX:
                self._close()
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """A piece at a time, for as long as no requests wait: however many came at once, few of them are in memory as more than bytes."""
        at = 0
        while at < len(data) and not self.pipeline and not self._deaf and not self.transport.is_closing():
            piece = data[at : at + PIECE_BYTES] if self._in_headers else data[at:]
            at += len(piece)
            self._parse_piece(piece)
        if at < len(data) and self.pipeline:
            self._held = data[at:]
            self.flow.pause_reading()
            self._stop_waiting()  # the rest of the headers is here

    def _parse_piece(self, data: bytes) -> None:
        if self._in_headers:
            if self._deadline is None:
                self._await_headers()  # the first bytes of another request
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > self.limits.header_bytes_max:
            self._refuse(*TOO_LONG, TooLarge("the headers of the request are too long"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._patience.begin(self.limits.write_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._patience.end()

    # --- requests ------------------------------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_headers:
            return  # what comes behind a body is nothing that anybody waits for
        if len(self.headers) >= HEADERS_MAX:
            self._mistake = TooLarge(f"a request may have {HEADERS_MAX} headers, and {self.limits.header_bytes_max} bytes of them")
            raise self._mistake
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_waiting()
        if self.parser is not None and self.parser.get_http_version() not in VERSIONS:  # pyright: ignore[reportUnnecessaryComparison]
            raise self._not_understood("HTTP/1.1 is spoken here")
        if any(name == b"transfer-encoding" and value.strip().lower() != b"chunked" for name, value in self.headers):
            raise self._not_understood("bodies come as they are or chunked, and with no other Transfer-Encoding")
        if len(self.pipeline) >= PIPELINE_MAX:
            raise self._not_understood("too many requests at once on one connection")
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before and self.scope["method"] != "HEAD":
            self.cycle.transport = cast(asyncio.Transport, HeadWithBody(self.transport))

    def _not_understood(self, why: str) -> EverforgeError:
        """To be raised in the middle of parsing, which says no more than that it failed."""
        self._mistake = InvalidInput(why)
        return self._mistake

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
        elif self._held:
            held, self._held = self._held, b""
            self._parse(held)  # or holds it again

    def handle_websocket_upgrade(self) -> None:
        self._stop_waiting()
        self._deaf = True
        if self._answering:
            self._close()  # an answer is still being written to where the WebSocket would begin
            return
        super().handle_websocket_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Answered as if it had not asked; what comes then is nothing we understand."""
        self._deaf = True
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
        if isinstance(self._mistake, TooLarge):
            self._refuse(*TOO_LONG, self._mistake)
        else:
            self._refuse(400, b"Bad Request", self._mistake)

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
