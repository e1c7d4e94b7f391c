"""HTTP by httpx2: the one place that knows it, and where its errors become ours. Written by hand here and in `_sync/`."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx2

from everforge.wire.errors import InvalidInput, ProtocolError
from everforge.wire.sentences import say

from ..failures import Cut, Unreached, cause_of, is_no_name

CONNECT_SECONDS = 10.0
CONNECTIONS_MAX = 100

ASYNCHRONOUS = True
sleep = asyncio.sleep
Condition = asyncio.Condition


async def wait(condition: asyncio.Condition, seconds: float) -> None:
    """For a notice, or so long. The condition is held before and after."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await condition.wait()


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """A function of the user's, of either kind."""
    found = function(*args, **kwargs)
    return await found if inspect.isawaitable(found) else found


async def off_loop(function: Callable[..., Any], *args: Any) -> Any:
    """What touches the disk."""
    return await asyncio.to_thread(function, *args)


class AsyncAnswer:
    """Status and headers are here; the body comes as it comes."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers  # whatever case a name is asked in
        self._body = response.aiter_raw()  # nothing packed is asked for, and no server of ours packs anything
        self._end: float | None = None

    def end_after(self, seconds: float) -> None:
        """Whatever has not come by then is cut off."""
        self._end = asyncio.get_running_loop().time() + seconds

    async def chunk(self) -> bytes:
        """The next; empty when there are no more."""
        with translated():
            try:
                async with asyncio.timeout_at(self._end):
                    return await anext(self._body, b"")
            except TimeoutError as e:
                raise Cut("its time is over") from e

    async def read(self, bytes_max: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := await self.chunk():
            size += len(chunk)
            if size > bytes_max:
                raise ProtocolError(say("answer_too_long", bytes=bytes_max))
            parts.append(chunk)
        return b"".join(parts)

    async def close(self) -> None:
        await self._body.aclose()
        await self._response.aclose()


class AsyncTransport:
    """Connections are kept for the next request."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        limits = httpx2.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX // 5)
        self._client = httpx2.AsyncClient(headers={**headers, "Accept-Encoding": "identity"}, limits=limits, verify=tls_context(base_url))

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | AsyncIterator[bytes] | None, silence_seconds: float
    ) -> AsyncAnswer:
        """`silence_seconds` is how long the other side may say and take nothing."""
        timeout = httpx2.Timeout(silence_seconds, connect=min(silence_seconds, CONNECT_SECONDS))
        with translated():
            request = self._client.build_request(method, url, headers=dict(headers), content=content, timeout=timeout)
            return AsyncAnswer(await self._client.send(request, stream=True))

    async def close(self) -> None:
        await self._client.aclose()


def tls_context(base_url: str) -> ssl.SSLContext:
    """Reading the certificates that this computer trusts takes a tenth of a second; whoever does not need them trusts none."""
    return ssl.create_default_context() if base_url.startswith("https") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextmanager
def translated() -> Generator[None]:
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError) as e:
        raise Unreached(str(e) or type(e).__name__, cause_of(e)) from e
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as e:
        raise InvalidInput(f"that cannot be asked: {e}") from e
    except (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError) as e:
        raise Cut(str(e) or type(e).__name__) from e
    except UnicodeError as e:
        if not is_no_name(e):
            raise
        raise Unreached(str(e), cause_of(e)) from e
