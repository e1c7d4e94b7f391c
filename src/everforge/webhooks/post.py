"""One POST to an address that was checked before. Redirects are not followed: they would lead where nobody has looked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Mapping
from functools import cache

from everforge.egress.names import Lookup

from .places import NotReached, Place, checked_address

HEAD_BYTES_MAX = 16 * 1024
STATUS_SHOWN_MAX = 60


async def post(place: Place, headers: Mapping[str, str], body: bytes, *, resolve: Lookup, seconds: float) -> None:
    """Returns when it was taken (2xx). Raises NotReached."""
    try:
        async with asyncio.timeout(seconds):
            status = await _exchange(place, await checked_address(place, resolve), _request(place, headers, body))
    except TimeoutError:
        raise NotReached(f"no answer within {seconds:g} seconds") from None
    except ssl.SSLError as e:
        raise NotReached(f"its TLS is not good: {e.reason or e}") from None
    except OSError as e:
        why = os.strerror(e.errno) if e.errno else "the connection failed"  # in its own words it would name the address
        raise NotReached(f"it cannot be reached: {why}") from None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise NotReached("what answers there does not speak HTTP") from None
    if not 200 <= status < 300:
        raise NotReached(f"it answered {status}" + ("; redirects are not followed" if 300 <= status < 400 else ""))


def _request(place: Place, headers: Mapping[str, str], body: bytes) -> bytes:
    name = f"[{place.host}]" if ":" in place.host else place.host
    default = 443 if place.tls else 80
    lines = [
        f"POST {place.target} HTTP/1.1",
        f"Host: {name}" + ("" if place.port == default else f":{place.port}"),
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{key}: {value}" for key, value in headers.items()),
    ]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


@cache
def _trust() -> ssl.SSLContext:
    """As this computer does; to read all its certificates takes a while."""
    return ssl.create_default_context()


async def _exchange(place: Place, address: str, request: bytes) -> int:
    """Its status; nobody wants to know what else it says."""
    tls = await asyncio.to_thread(_trust) if place.tls else None
    reader, writer = await asyncio.open_connection(
        address, place.port, ssl=tls, server_hostname=place.host if tls else None, limit=HEAD_BYTES_MAX
    )  # fmt: skip
    try:
        writer.write(request)
        await writer.drain()
        line = await reader.readuntil(b"\n")
        version, status, *_ = line[:STATUS_SHOWN_MAX].split()
        if not version.startswith(b"HTTP/1."):
            raise ValueError("not HTTP")
        return int(status)
    finally:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError, ssl.SSLError):
            writer.transport.abort()
