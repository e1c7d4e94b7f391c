"""The gate before the protocol over HTTP: every request brings the bearer token of an account of the Everforge server."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from everforge import AsyncEverforge, EverforgeError
from everforge.client.config import check_token
from everforge.wire.errors import Forbidden, InvalidInput, Unauthenticated

from .limits import RETRY_SECONDS, TOKEN_SECONDS, TOKENS_MAX

CHALLENGE = 'Bearer realm="everforge", error="invalid_token"'
NO_TOKEN = "send the token of an account in the header Authorization: Bearer TOKEN; `everforge token new` makes one"
BAD_TOKEN = "this token is not known to the Everforge server, or no longer: `everforge token new` makes one"


class Tokens:
    """Which tokens are good, as the server says; for a moment it is not asked again. A machine is only ever reached by asking it."""

    def __init__(self, base_url: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._base_url, self._clock = base_url, clock
        self._good: OrderedDict[str, float] = OrderedDict()  # by their hash: until when

    async def check(self, token: str) -> None:
        """Unauthenticated if it is not good; another error if that cannot be known."""
        name = hash_of(token)
        if self._good.get(name, 0.0) > self._clock():
            return
        self._good.pop(name, None)
        await self._ask(token)
        self._good[name] = self._clock() + TOKEN_SECONDS
        if len(self._good) > TOKENS_MAX:
            self._good.popitem(last=False)

    async def _ask(self, token: str) -> None:
        try:
            checked = check_token(token)
        except InvalidInput as e:
            raise Unauthenticated(e.message) from e
        base_url = await anyio.to_thread.run_sync(self._base_url)
        async with AsyncEverforge(checked, base_url, retry_seconds=RETRY_SECONDS) as client:
            try:
                await client.whoami()
            except Forbidden:
                pass  # it is good, but may not ask that


class Gate:
    """Puts the account's token into the request for whoever serves it, and lets nobody else through. A session belongs to the token that began it."""

    def __init__(self, inner: ASGIApp, tokens: Tokens) -> None:
        self._inner, self._tokens = inner, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        refusal = await self._refusal(kind, token.strip())
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(AccessToken(token=token.strip(), client_id=hash_of(token.strip()), scopes=[]))
        await self._inner(scope, receive, send)

    async def _refusal(self, kind: str, token: str) -> Response | None:
        if kind.lower() != "bearer" or not token:
            return answer(401, "Unauthenticated", NO_TOKEN)
        try:
            await self._tokens.check(token)
        except Unauthenticated:
            return answer(401, "Unauthenticated", BAD_TOKEN)
        except EverforgeError as e:
            return answer(503, e.code, e.message)
        return None


def answer(status: int, code: str, message: str) -> Response:
    headers = {"WWW-Authenticate": CHALLENGE} if status == 401 else {"Retry-After": "5"}
    return Response(json.dumps({"error": code, "error_description": message}), status, headers, "application/json")


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
