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
from everforge.wire.errors import InvalidInput, TooMany, Unauthenticated

from .service import Service
from .witness import Sight, address_of

BROWSER_TOKEN = "_forevervm_jwt"  # query parameter of WebSockets made by browsers, which cannot set headers
_KEY = re.compile(rf"[ -~]{{1,{KEY_LENGTH_MAX}}}")


@dataclass(frozen=True, slots=True)
class Call:
    service: Service
    request: Request
    caller: Identity | None  # None on routes that need no token
    id: str
    sight: Sight  # for the audit log

    @property
    def identity(self) -> Identity:
        assert self.caller is not None
        return self.caller

    @property
    def notes(self) -> dict[str, Any]:
        """For the audit log: names, numbers and hashes, never what was said. Of what was checked, and so best of what was done."""
        return self.sight.notes

    @property
    def machines(self) -> Machines:
        """The caller's, and nobody else's."""
        return self.service.machines.of(self.identity.account, self.identity.tags)

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


async def admit(
    service: Service, connection: HTTPConnection, sight: Sight, *scopes: Scope, owner_only: bool = False, of_machines: bool = True
) -> Identity:
    """One more request, of somebody who may ask this: counted before that is looked at, since to be refused costs the server something, too.

    Raises Unauthenticated, TooMany, Forbidden; `sight` is told who it was, if that is known, all the same.
    """
    identity = sight.caller = await identify(service, connection)
    sight.token = identity.token_id
    await count(service, identity)
    allow(identity, *scopes, owner_only=owner_only, of_machines=of_machines)
    return identity


async def count_astray(service: Service, connection: HTTPConnection, request_id: str) -> None:
    """One more request, for what this server does not have. Raises TooMany."""
    sight = Sight(None, "nowhere", address_of(connection), request_id)
    try:
        await admit(service, connection, sight)
    except Unauthenticated:
        return  # a stranger, and counted as one
    except TooMany as e:
        await service.witness.saw(sight, e)
        raise


async def identify(service: Service, connection: HTTPConnection) -> Identity:
    """Raises Unauthenticated; TooMany for a stranger who tries too often. A token that was seen before costs no wait."""
    accounts, token = service.accounts, bearer(connection)
    identity = accounts.cached(token)
    if identity is None:
        try:
            if token is None:
                raise Unauthenticated("a token is needed: send it as `Authorization: Bearer <token>`")
            identity = await accounts.identify(token)  # what this server never gave out costs no look into the store
        except Unauthenticated:
            accounts.throttle.count_stranger(address_of(connection))  # who has a good token is not kept out by others at the same address
            raise
    return identity


def allow(identity: Identity, *scopes: Scope, owner_only: bool = False, of_machines: bool = True) -> None:
    """Raises Forbidden."""
    for scope in scopes:
        identity.require(scope)
    if not of_machines:
        identity.require_everything()
    if owner_only:
        identity.require_owner()


async def count(service: Service, identity: Identity) -> None:
    """One more request of the account. Raises TooMany when it sends more than it may."""
    quotas = service.accounts.quotas
    quota = quotas.known(identity.account)
    service.accounts.count(identity, await quotas.of(identity.account) if quota is None else quota)


def bearer(connection: HTTPConnection) -> str | None:
    """The token that came with it, good or not."""
    header = connection.headers.get("authorization")
    if header is None and connection.scope["type"] == "websocket":
        header = f"Bearer {connection.query_params.get(BROWSER_TOKEN, '')}"
    kind, _, token = (header or "").partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None
