"""The proxy that this computer's own pip goes through to reach the package index: machines go the same way, to the index and nowhere else.

It is trusted as far as this computer trusts it. What it is asked for is the host that the policy allowed; where that lies is the proxy's to know.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from .bytestream import SocketStream

HEAD_BYTES_MAX = 16 * 1024
Dial = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@dataclass(frozen=True, slots=True)
class Upstream:
    host: str
    port: int
    credentials: str = ""  # user:password
    not_for: str = ""  # hosts that are reached without it, as `no_proxy` names them

    def serves(self, host: str) -> bool:
        names = [name.strip().lower().lstrip(".") for name in self.not_for.split(",")]
        return not any(name == "*" or (name and (host == name or host.endswith(f".{name}"))) for name in names)

    async def connect(self, host: str, port: int, dial: Dial) -> SocketStream:
        """Through the proxy. Raises OSError that says what the proxy said."""
        reader, writer = await dial(self.host, self.port)
        try:
            writer.write(self._ask(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"))
            head = await reader.readuntil(b"\r\n\r\n")
            said = head.partition(b"\r\n")[0].decode("latin-1")
            if len(head) > HEAD_BYTES_MAX or said.split(" ")[1:2] != ["200"]:
                raise OSError(f"the proxy of this computer, {self.host}:{self.port}, says: {said[:200]}")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as e:
            writer.transport.abort()
            raise OSError(f"the proxy of this computer, {self.host}:{self.port}, does not answer as one") from e
        except BaseException:
            writer.transport.abort()
            raise
        return SocketStream(reader, writer)

    def _ask(self, place: str) -> bytes:
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self.credentials:
            lines.append("Proxy-Authorization: Basic " + b64encode(self.credentials.encode()).decode("ascii"))
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def upstream_of(pip_proxy: str, environment: Mapping[str, str] = os.environ) -> Upstream | None:
    """What pip is told comes before what all programs are told. None: there is no proxy."""
    named = sorted(environment.items())  # small letters come last, and count
    told = {name.lower().removesuffix("_proxy"): value for name, value in named if name.lower().endswith("_proxy")}
    url = pip_proxy or told.get("https", "") or told.get("all", "")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 3128
    except ValueError:
        return None
    if not url or not parts.hostname or parts.scheme != "http":
        return None
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return Upstream(parts.hostname, port, credentials, told.get("no", ""))
