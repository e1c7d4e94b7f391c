"""HTTP by httpx2: the one place that knows it, and where its errors become ours. Written by hand here and in `_async/`."""

from __future__ import annotations

import inspect
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx2

from everforge.wire.errors import InvalidInput, ProtocolError
from everforge.wire.sentences import say

from ..failures import Cut, Unreached, cause_of, is_no_name

CONNECT_SECONDS = 10.0
CONNECTIONS_MAX = 100

ASYNCHRONOUS = False
sleep = time.sleep
Condition = threading.Condition


def wait(condition: threading.Condition, seconds: float) -> None:
    """For a notice, or so long. The condition is held before and after."""
    condition.wait(seconds)


def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """A function of the user's, of the plain kind."""
    if inspect.iscoroutinefunction(function):
        raise InvalidInput(f"{function.__name__} is an async function: use the async client, or give a plain one")
    return function(*args, **kwargs)


def off_loop(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class Answer:
    """Status and headers are here; the body comes as it comes."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers  # whatever case a name is asked in
        self._body = response.iter_raw()  # nothing packed is asked for, and no server of ours packs anything
        self._end: threading.Timer | None = None

    def end_after(self, seconds: float) -> None:
        """Whatever has not come by then is cut off: under the feet of whoever waits for it, since no clock of the library's can be set anew."""
        self._end = threading.Timer(seconds, self._cut)
        self._end.daemon = True
        self._end.start()

    def _cut(self) -> None:
        connection = self._response.extensions["network_stream"].get_extra_info("socket")
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not a TLS socket's own, which is for its reader alone

    def chunk(self) -> bytes:
        """The next; empty when there are no more."""
        with translated():
            return next(self._body, b"")

    def read(self, bytes_max: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := self.chunk():
            size += len(chunk)
            if size > bytes_max:
                raise ProtocolError(say("answer_too_long", bytes=bytes_max))
            parts.append(chunk)
        return b"".join(parts)

    def close(self) -> None:
        if self._end is not None:
            self._end.cancel()
        self._response.close()


class Transport:
    """Connections are kept for the next request."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        limits = httpx2.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX // 5)
        self._client = httpx2.Client(headers={**headers, "Accept-Encoding": "identity"}, limits=limits, verify=tls_context(base_url))

    def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | Iterator[bytes] | None, silence_seconds: float) -> Answer:
        """`silence_seconds` is how long the other side may say and take nothing."""
        timeout = httpx2.Timeout(silence_seconds, connect=min(silence_seconds, CONNECT_SECONDS))
        with translated():
            request = self._client.build_request(method, url, headers=dict(headers), content=content, timeout=timeout)
            return Answer(self._client.send(request, stream=True))

    def close(self) -> None:
        self._client.close()


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
