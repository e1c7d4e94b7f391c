"""WebSockets by websockets: the one place that knows it, and where its errors become ours. Written by hand here and in `_sync/`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException

from everforge.wire.errors import InvalidInput

from ..failures import Closed, Cut, Refusal, Unreached, cause_of

FRAME_BYTES_MAX = 16 * 1024 * 1024 + 1024
CLOSE_SECONDS = 2.0  # a server that does not say good-bye is not waited for


class AsyncSocket:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str, headers: Mapping[str, str], seconds: float) -> AsyncSocket:
        try:
            # Whether the other side lives is asked by whoever waits, with requests of ours: hence no pings of the library's.
            connection = await connect(
                url, additional_headers=dict(headers), open_timeout=seconds, close_timeout=CLOSE_SECONDS, ping_interval=None,
                max_size=FRAME_BYTES_MAX, compression=None,
            )  # fmt: skip
        except InvalidStatus as e:
            raise Refusal(e.response.status_code, e.response.headers, bytes(e.response.body or b"")) from e
        except InvalidURI as e:
            raise InvalidInput(f"that cannot be asked: {e}") from e
        except (OSError, TimeoutError, UnicodeError, InvalidHandshake, WebSocketException, EOFError) as e:
            raise Unreached(str(e) or type(e).__name__, cause_of(e)) from e
        return cls(connection)

    async def send(self, text: str, seconds: float) -> None:
        """What the other side has not taken by then stays in its middle: nothing else can be sent behind it, and the connection is dropped."""
        try:
            async with asyncio.timeout(seconds):
                await self._connection.send(text)
        except TimeoutError as e:
            await self.drop()
            raise Cut("it takes nothing any more") from e
        except (ConnectionClosed, OSError) as e:
            raise _cut(e) from e

    async def receive(self, seconds: float) -> str | None:
        """None when nothing came."""
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.recv(decode=True)
        except TimeoutError:
            return None
        except (ConnectionClosed, OSError, UnicodeDecodeError) as e:
            raise _cut(e) from e

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._connection.close()
        except TimeoutError:
            await self.drop()

    async def drop(self) -> None:
        """Without a good-bye, which nobody would hear."""
        self._connection.transport.abort()
        await self._connection.wait_closed()


def _cut(error: Exception) -> Cut:
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return Closed(error.rcvd.code, error.rcvd.reason)
    return Cut(str(error) or type(error).__name__)
