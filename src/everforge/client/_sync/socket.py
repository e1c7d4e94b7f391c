"""WebSockets by websockets: the one place that knows it, and where its errors become ours. Written by hand here and in `_async/`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from everforge.wire.errors import InvalidInput

from ..failures import Closed, Cut, Refusal, Unreached, cause_of

FRAME_BYTES_MAX = 16 * 1024 * 1024 + 1024
CLOSE_SECONDS = 2.0  # a server that does not say good-bye is not waited for
SHORT_CHARACTERS = 16 * 1024


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, url: str, headers: Mapping[str, str], seconds: float) -> Socket:
        try:
            # Whether the other side lives is asked by whoever waits, with requests of ours: hence no pings of the library's.
            connection = connect(
                url, additional_headers=dict(headers), open_timeout=seconds, close_timeout=CLOSE_SECONDS, ping_interval=None,
                max_size=FRAME_BYTES_MAX, compression=None, legacy=True,
            )  # fmt: skip
        except InvalidStatus as e:
            raise Refusal(e.response.status_code, e.response.headers, bytes(e.response.body or b"")) from e
        except InvalidURI as e:
            raise InvalidInput(f"that cannot be asked: {e}") from e
        except (OSError, TimeoutError, UnicodeError, InvalidHandshake, WebSocketException, EOFError) as e:
            raise Unreached(str(e) or type(e).__name__, cause_of(e)) from e
        return cls(connection)

    def send(self, text: str, seconds: float) -> None:
        """What the other side has not taken by then stays in its middle: nothing else can be sent behind it, and the connection is dropped.

        A short text fits into what the kernel holds, or waits behind a long one whose time runs already: no clock is started for it.
        """
        try:
            with self._shut_after(seconds) if len(text) > SHORT_CHARACTERS else nullcontext():
                self._connection.send(text)
        except (ConnectionClosed, OSError) as e:
            raise _cut(e) from e

    def receive(self, seconds: float) -> str | None:
        """None when nothing came."""
        try:
            return self._connection.recv(timeout=seconds, decode=True)
        except TimeoutError:
            return None
        except (ConnectionClosed, OSError, UnicodeDecodeError) as e:
            raise _cut(e) from e

    def close(self) -> None:
        with self._shut_after(CLOSE_SECONDS):  # another thread may be in the middle of sending, and the library waits for it
            self._connection.close()

    def drop(self) -> None:
        """Without a good-bye, which nobody would hear."""
        self._shut()
        self._connection.close()

    @contextmanager
    def _shut_after(self, seconds: float) -> Generator[None]:
        """Under the feet of whoever still waits then: the library has no clock for it."""
        timer = threading.Timer(seconds, self._shut)
        timer.daemon = True
        with suppress(RuntimeError):  # at the end of a program no thread can be started: then without
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _shut(self) -> None:
        connection = getattr(self._connection.socket, "ssl_socket", self._connection.socket)  # through a proxy with TLS of its own
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not a TLS socket's own, which is for its reader alone


def _cut(error: Exception) -> Cut:
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return Closed(error.rcvd.code, error.rcvd.reason)
    return Cut(str(error) or type(error).__name__)
