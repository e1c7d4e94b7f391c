"""The protocol over streamable HTTP, for clients anywhere that have the token of an account."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everforge.client.config import check_url, find_access
from everforge.wire.errors import Refused

from .bearer import Gate, Tokens, answer
from .callers import Remote
from .calls import Link, Settings
from .connections import Connection
from .limits import MESSAGE_BYTES_MAX, SESSION_IDLE_SECONDS, SESSIONS_MAX
from .server import Offer, make_server
from .sessions import Sessions

PATH = "/mcp"
HOST, PORT = "127.0.0.1", 8788
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
BACKLOG = 128
CONNECTIONS_MAX = 2000
STOP_SECONDS = 2  # for answers that are on their way


class PortBusy(Refused):
    code = "PortBusy"


class Ending:
    """Around everything that is served: streams that would stay open for as long as their clients like end when the server does, and end well."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self._open: set[anyio.CancelScope] = set()
        self._over = False

    def end(self) -> None:
        self._over = True
        for scope in self._open:
            scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        sent: list[Message] = []  # the last of them

        async def watched(message: Message) -> None:
            await send(message)
            sent[:] = [message]

        with anyio.CancelScope() as within:
            self._open.add(within)
            try:
                await self._inner(scope, receive, watched)
            finally:
                self._open.discard(within)
        if self._over and not sent:
            await answer(503, "Stopping", "the MCP server is going down: try again in a moment")(scope, receive, send)
        elif self._over and (sent[0]["type"] == "http.response.start" or sent[0].get("more_body")):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True)
class Place:
    """Where to listen, and under which names we may be asked for: a page that a browser was lured to has another."""

    host: str = HOST
    port: int = PORT
    names: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def security(self) -> TransportSecuritySettings:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        known = dict.fromkeys([*LOOPBACK, shown, *self.names])
        hosts = [form for name in known for form in (name, f"{name}:*")]
        return TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        )


def server_address() -> str:
    """Of the Everforge server: each caller has a token of their own, so that ours is not needed. Asked each time, since it may move."""
    given = os.environ.get("EVERFORGE_URL")
    return check_url(given) if given else find_access().base_url


def make_app(settings: Settings, place: Place, base_url: Callable[[], str] = server_address, link: Link | None = None) -> Starlette:
    offer = Offer(Remote(base_url), settings, link)
    sessions = Sessions(
        make_server(offer),
        security_settings=place.security,
        max_request_body_size=MESSAGE_BYTES_MAX,
        session_idle_timeout=SESSION_IDLE_SECONDS,
        max_sessions=SESSIONS_MAX,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with sessions.run():
            yield

    return Starlette(routes=[Route(PATH, Gate(StreamableHTTPASGIApp(sessions), Tokens(base_url)))], lifespan=lifespan)


def listen(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=BACKLOG)
    except OSError as e:
        why = os.strerror(e.errno).lower() if e.errno else str(e)
        raise PortBusy(f"cannot listen at {place.host} port {place.port}: {why}; --port 0 picks a free one") from e


def url_of(place: Place, listener: socket.socket) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"http://{host}:{listener.getsockname()[1]}{PATH}"


def configuration(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """What clients do wrong is told to them: a log that they could fill is of no use."""
    return uvicorn.Config(
        app, http=Connection, ws="none", lifespan="on", log_level="error", access_log=False, server_header=False, proxy_headers=False, **more
    )  # fmt: skip


class _Uvicorn(uvicorn.Server):
    """Ends with 0 when it is told to end, and first says that calls which end now were not cancelled by their clients."""

    link: Link
    ending: Ending

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._end)
        yield

    def _end(self) -> None:
        self.link.closed = True
        self.should_exit = True
        self.ending.end()


async def serve(settings: Settings, place: Place, ready: Callable[[str], None]) -> None:
    """Until somebody stops us. `ready` is told the address."""
    link = Link()
    ending = Ending(make_app(settings, place, link=link))
    listener = listen(place)
    server = _Uvicorn(configuration(ending, limit_concurrency=CONNECTIONS_MAX, timeout_graceful_shutdown=STOP_SECONDS))
    server.link, server.ending = link, ending
    with listener:
        ready(url_of(place, listener))
        await server.serve(sockets=[listener])
