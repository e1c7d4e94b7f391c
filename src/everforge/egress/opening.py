"""How a tunnel of TLS begins: with a client's hello, or two, for the host that was allowed."""

from __future__ import annotations

import asyncio

from . import addresses
from .attempts import Attempt
from .bytestream import ByteStream, Cut
from .hello import HELLO_BYTES_MAX, NotTls, asks_again, before_hello, server_name
from .rules import normal_host

EARLY_BYTES_MAX = 1024 * 1024  # what a client may have encrypted before it hears that it must say hello again


class Opening:
    """Raises NotTls for anything else, and Cut after so many seconds of waiting for either side."""

    def __init__(self, client: ByteStream, attempt: Attempt, seconds: float) -> None:
        self._client = client
        self._attempt = attempt
        self._seconds = seconds

    async def hello(self, data: bytes) -> tuple[bytes, bytes]:
        """The client's first words, and what has come behind them; of both `data` is the beginning."""
        try:
            async with asyncio.timeout(self._seconds):
                while (asked := server_name(data)) is None:
                    if len(data) > HELLO_BYTES_MAX:
                        raise NotTls
                    data += await self._more()
        except TimeoutError:
            raise Cut(f"the beginning of TLS has not come within {self._seconds:g} s") from None
        self._check(asked.name)
        return data[: asked.end], data[asked.end :]

    def _check(self, name: str | None) -> None:
        host = self._attempt.host
        if name is None and addresses.parse(host) is not None:
            return  # for an address no name is asked
        if name is None or normal_host(name) != host:
            raise NotTls(f"TLS for {(name or 'no name')[:100]} in a connection that was allowed for {host}")

    async def pass_on(self, hello: bytes, left: bytes, server: ByteStream) -> None:
        """Until the server has answered. It may ask for another hello, for the same host: nothing passes before it is known whether it does."""
        await server.write(hello)
        said = b""
        try:
            async with asyncio.timeout(self._seconds):
                while (again := asks_again(said)) is None and (more := await server.read()):
                    said += more
        except TimeoutError:
            raise Cut(f"{self._attempt.host} has not answered within {self._seconds:g} s") from None
        await self._client.write(said)
        if again:
            hello, left = await self._second_hello(left, server)
            await server.write(hello)
        if left:
            await server.write(left)

    async def _second_hello(self, left: bytes, server: ByteStream) -> tuple[bytes, bytes]:
        try:
            async with asyncio.timeout(self._seconds):
                beginning = await self._pass_early(left, server)
        except TimeoutError:
            raise Cut(f"the second hello of TLS has not come within {self._seconds:g} s") from None
        return await self.hello(beginning)

    async def _pass_early(self, left: bytes, server: ByteStream) -> bytes:
        """What a client has sent before its second hello. Returns the beginning of that."""
        room = EARLY_BYTES_MAX
        while (size := before_hello(left)) != 0:
            if size is None:
                left += await self._more()
                continue
            room -= size
            if room < 0:
                raise NotTls
            await server.write(left[:size])
            left = left[size:]
        return left

    async def _more(self) -> bytes:
        if not (data := await self._client.read()):
            raise NotTls
        return data
