"""Who asks, and which conversation it is: from what a connection and its requests say."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from everforge.client.config import Access, find_access

from .calls import Settings

HEADER = "everforge-conversation"
SESSION = "mcp-session-id"
KEY_CHARACTERS_MAX = 4096
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True)
class Caller:
    access: Access
    conversation: str  # its key


class Callers(Protocol):
    async def of(self, context: Context) -> Caller: ...


class Local:
    """Whoever started us, over standard input and output: with their own log-in, and one conversation for each client and folder."""

    def __init__(self, settings: Settings) -> None:
        self._named = settings.conversation
        self._folder = os.getcwd()  # noqa: PTH109 - a name, also where it has gone

    async def of(self, context: Context) -> Caller:
        access = await anyio.to_thread.run_sync(find_access)  # each time: the server may have moved
        return Caller(access, named(self._named) if self._named else f"local\n{client_name(context)}\n{self._folder}")


class Remote:
    """Over HTTP: the token of each request is the caller's own."""

    def __init__(self, base_url: Callable[[], str]) -> None:
        self._base_url = base_url

    async def of(self, context: Context) -> Caller:
        request = cast("Request[Any] | None", context.request)
        assert request is not None  # this transport has one for each message
        user: AuthenticatedUser = request.scope["user"]  # put there by the gate, without which nobody comes here
        return Caller(Access(await anyio.to_thread.run_sync(self._base_url), user.access_token.token, "the request"), self._key(context, request))

    def _key(self, context: Context, request: Request[Any]) -> str:
        """What the client says it continues; else its session; else, in protocols without sessions, what it is called."""
        if given := request.headers.get(HEADER):
            return named(given)
        if session := request.headers.get(SESSION):
            return f"session\n{session[:KEY_CHARACTERS_MAX]}"
        return f"client\n{client_name(context)}"


def named(name: str) -> str:
    """The same over each way in."""
    return f"named\n{name[:KEY_CHARACTERS_MAX]}"


def client_name(context: Context) -> str:
    params = context.session.client_params
    return params.client_info.name[:KEY_CHARACTERS_MAX] if params is not None else ""
