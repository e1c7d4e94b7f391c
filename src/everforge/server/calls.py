"""One request on its way: who asks, for which machine, with what."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection, Request

from everforge.accounts.identity import Identity
from everforge.machines.requests import KEY_LENGTH_MAX
from everforge.machines.service import Machines
from everforge.wire.api import Scope
from everforge.wire.errors import InvalidInput, Unauthenticated

from .service import Service

BROWSER_TOKEN = "_forevervm_jwt"  # query parameter of WebSockets made by browsers, which cannot set headers
_KEY = re.compile(rf"[ -~]{{1,{KEY_LENGTH_MAX}}}")


@dataclass(frozen=True, slots=True)
class Call:
    service: Service
    request: Request
    caller: Identity | None  # None on routes that need no token
    id: str

    @property
    def identity(self) -> Identity:
        assert self.caller is not None
        return self.caller

    @property
    def machines(self) -> Machines:
        """The caller's, and nobody else's."""
        return self.service.machines.of(self.identity.account)

    @property
    def name(self) -> str:
        return self.request.path_params["name"]

    @property
    def key(self) -> str | None:
        return self.request.headers.get("idempotency-key")

    def path(self, name: str) -> Any:
        return self.request.path_params[name]


def check_key(value: object) -> str | None:
    """An idempotency key, or none. Raises InvalidInput."""
    if value is None or (isinstance(value, str) and _KEY.fullmatch(value)):
        return value
    raise InvalidInput(f"an idempotency key has 1 to {KEY_LENGTH_MAX} characters of ASCII, from space to ~")


def new_request_id() -> str:
    return secrets.token_hex(8)


async def identify(service: Service, connection: HTTPConnection, *scopes: Scope, owner_only: bool = False) -> Identity:
    """Raises Unauthenticated, Forbidden. A token that was seen before costs no wait."""
    token = _token(connection)
    identity = service.accounts.cached(token) or await service.accounts.identify(token)
    for scope in scopes:
        identity.require(scope)
    if owner_only:
        identity.require_owner()
    return identity


def _token(connection: HTTPConnection) -> str:
    header = connection.headers.get("authorization")
    if header is None and connection.scope["type"] == "websocket":
        header = f"Bearer {connection.query_params.get(BROWSER_TOKEN, '')}"
    kind, _, token = (header or "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthenticated("a token is needed: send it as `Authorization: Bearer <token>`")
    return token.strip()
