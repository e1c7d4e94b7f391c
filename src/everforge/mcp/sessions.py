"""Sessions over HTTP: so many in all and so many for one token, and in each a message is what it is over standard input."""

from __future__ import annotations

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

UNDER_WAY = "a request with this id is under way in this session already: give each an id of its own"


class Sessions(StreamableHTTPSessionManager):
    """The SDK would let a second request take the answer of a first with the same id, which would then be waited for without end."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._under_way: set[tuple[str, str, str | int]] = set()  # by whose they are, session and id

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """So that nobody takes everybody's."""
        if sum(owner == requestor for owner in self._session_owners.values()) >= SESSIONS_OF_TOKEN_MAX:
            return None
        return super()._admit_session(requestor)

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if scope["method"] != "POST" or session is None:
            await super()._handle_request(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()  # no longer than it may be: that was seen to before
        except ClientDisconnect:
            return
        message = parse(body)
        if isinstance(message, JSONRPCError):
            await _refusal(message)(scope, receive, send)
        elif isinstance(message.message, JSONRPCRequest):
            await self._once((scope["user"].username, session, message.message.id), scope, _replayed(body, receive), send)
        else:
            await super()._handle_request(scope, _replayed(body, receive), send)

    async def _once(self, place: tuple[str, str, str | int], scope: Scope, receive: Receive, send: Send) -> None:
        if place in self._under_way:
            await _refusal(error(INVALID_REQUEST, UNDER_WAY, place[2]))(scope, receive, send)
            return
        self._under_way.add(place)
        try:
            await super()._handle_request(scope, receive, send)
        finally:
            self._under_way.discard(place)


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
