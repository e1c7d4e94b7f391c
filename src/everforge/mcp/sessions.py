"""Sessions over HTTP: so many in all and so many for one token, and in each a message is what it is over standard input."""

from __future__ import annotations

import re
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import INVALID_REQUEST, JSONRPCError, JSONRPCRequest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from .limits import SESSIONS_OF_TOKEN_MAX
from .messages import encoded, error, parse

_NAMED = r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]]+)(:[0-9]{1,5})?"
_HOST, _ORIGIN = re.compile(_NAMED), re.compile(f"https?://{_NAMED}")
UNDER_WAY = "a request with this id is under way in this session already: give each an id of its own"


class Sessions(StreamableHTTPSessionManager):
    """The SDK would let a second request take the answer of a first with the same id, which would then be waited for without end."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._under_way: set[tuple[str, str, str]] = set()  # by whose they are, session and id, of which the SDK takes 7 and "7" for the same

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """So that nobody takes everybody's."""
        if sum(owner == requestor for owner in self._session_owners.values()) >= SESSIONS_OF_TOKEN_MAX:
            return None
        return super()._admit_session(requestor)

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if (elsewhere := _elsewhere(headers)) is not None:
            await elsewhere(scope, receive, send)
        elif scope["method"] == "POST":
            try:
                body = await Request(scope, receive).body()  # no longer than it may be: that was seen to before
            except ClientDisconnect:
                return  # the SDK would write that down as an error
            await self._handle_post(headers.get(MCP_SESSION_ID_HEADER), body, scope, receive, send)
        else:
            await super()._handle_request(scope, receive, send)

    async def _handle_post(self, session: str | None, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        if session is None:
            await super()._handle_request(scope, _replayed(body, receive), send)
            return
        message = parse(body)
        if isinstance(message, JSONRPCError):
            await _refusal(message)(scope, receive, send)
        elif isinstance(message.message, JSONRPCRequest):
            await self._once(session, message.message.id, scope, _replayed(body, receive), send)
        else:
            await super()._handle_request(scope, _replayed(body, receive), send)

    async def _once(self, session: str, id: str | int, scope: Scope, receive: Receive, send: Send) -> None:
        place = (scope["user"].username, session, str(id))
        if place in self._under_way:
            await _refusal(error(INVALID_REQUEST, UNDER_WAY, id))(scope, receive, send)
            return
        self._under_way.add(place)
        try:
            await super()._handle_request(scope, receive, send)
        finally:
            self._under_way.discard(place)


def _elsewhere(headers: Headers) -> Response | None:
    """Which names are ours the SDK knows, but it takes anything behind their colon for a port."""
    if not _HOST.fullmatch(headers.get("host", "")):
        return Response("Invalid Host header", 421)
    if (origin := headers.get("origin")) and not _ORIGIN.fullmatch(origin):
        return Response("Invalid Origin header", 403)
    return None


def _refusal(message: JSONRPCError) -> Response:
    return Response(encoded(message), 400, media_type="application/json")


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
