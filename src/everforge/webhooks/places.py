"""Where a webhook points to. An account names the address, and this server goes there: so it must not be made to knock at doors of its own network.

A name is resolved once for each try, every address that it has is checked, and the connection goes to one that was.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from everforge.egress.addresses import Address, is_closed, is_of_this_computer, parse
from everforge.egress.names import Lookup
from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import show

URL_LENGTH_MAX = 2_000
HTTPS_PORT = 443
LOWEST_OTHER_PORT = 1024  # what listens below it is no webhook, and some of it takes commands from whatever it reads


class NotReached(Exception):
    """Why a delivery did not arrive, in words for the webhook's owner."""


@dataclass(frozen=True, slots=True)
class Place:
    tls: bool
    host: str
    port: int
    target: str  # path and query
    is_open: bool  # the owner of the server opened it


def _opened(text: str) -> tuple[str, int]:
    """A host and a port of the settings, in the one spelling that addresses are compared in."""
    try:
        parts = urlsplit(f"//{text}")
        return parts.hostname or "", parts.port or 0
    except ValueError:
        return "", 0  # opens nothing


def place_of(url: object, open_hosts: Collection[str]) -> Place:
    """Raises InvalidInput for what can never be one, whatever its name stands for."""
    try:
        if not isinstance(url, str) or len(url) > URL_LENGTH_MAX or not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.fragment or "\\" in url or port == 0:
            raise ValueError
    except ValueError:
        raise InvalidInput(f"{show(url)} is not the address of a webhook: give one like https://example.org/hook, without a password") from None
    tls = parts.scheme == "https"
    port = port or (HTTPS_PORT if tls else 80)
    is_open = (host, port) in {_opened(text) for text in open_hosts}
    if not is_open:
        _check(tls, host, port)
    return Place(tls, host, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), is_open)


def _check(tls: bool, host: str, port: int) -> None:
    if not tls:
        raise InvalidInput("a webhook's address begins with https://, unless the owner of the server opened that host (webhook_hosts_open)")
    if port != HTTPS_PORT and port < LOWEST_OTHER_PORT:
        raise InvalidInput(f"a webhook's port is {HTTPS_PORT}, or at least {LOWEST_OTHER_PORT}")
    if (literal := parse(host)) is not None and (why := _closed(literal)):
        raise InvalidInput(f"{host} is {why}, which no webhook may point to unless the owner of the server opened it (webhook_hosts_open)")


async def checked_address(place: Place, resolve: Lookup) -> str:
    """One to connect to. Raises NotReached if any that its name stands for is closed: who answers so is not to be trusted with the others either."""
    literal = parse(place.host)
    try:
        found = [str(literal)] if literal else list(await resolve(place.host, place.port))
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise NotReached(f"the name {place.host} is not known")
    if not place.is_open:
        for text in found:
            if why := _closed(ip_address(text.partition("%")[0])):
                # The address itself is not told: whoever asks here sees names as this computer does, and that may be what they are after.
                raise NotReached(f"no webhook may point there: an address of {place.host} is {why}")
    return found[0]


def _closed(address: Address) -> str | None:
    return is_closed(address) or ("this computer itself" if is_of_this_computer(address) else None)
