"""SOCKS5 as far as a door needs it: no password, CONNECT alone."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import NamedTuple

from .bytestream import ByteStream, Cut

VERSION = b"\x05"
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
SUCCEEDED, NOT_ALLOWED, UNREACHABLE, COMMAND_UNKNOWN, ADDRESS_UNKNOWN = 0, 2, 4, 7, 8
_NO_METHOD = b"\x05\xff"


class _Reader:
    def __init__(self, stream: ByteStream, first: bytes) -> None:
        self._stream = stream
        self._data = first

    @property
    def left(self) -> bytes:
        return self._data

    async def take(self, size: int) -> bytes:
        while len(self._data) < size:
            more = await self._stream.read()
            if not more:
                raise Cut("the machine has cut the connection")
            self._data += more
        taken, self._data = self._data[:size], self._data[size:]
        return taken


class NotConnect(Cut):
    """Something else was asked for, and refused."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__("SOCKS5 is for CONNECT here")
        self.host, self.port = host, port


class Asked(NamedTuple):
    host: str
    port: int
    left: bytes  # what came behind, from a client that does not wait for an answer


async def greet(stream: ByteStream, first: bytes, seconds: float) -> Asked:
    """What is asked for. A client that asks for anything else than a connection is told so. Raises Cut, NotConnect."""
    async with asyncio.timeout(seconds):
        reader = _Reader(stream, first)
        _, count = await reader.take(2)
        if 0 not in await reader.take(count):
            await stream.write(_NO_METHOD)
            await stream.end()
            raise Cut("no way to log in without a password was offered")
        await stream.write(b"\x05\x00")
        version, command, _, kind = await reader.take(4)
        host = await _host(reader, kind)
        port = int.from_bytes(await reader.take(2), "big")
    if version != VERSION[0] or command != _CONNECT or host is None:
        await refuse(stream, COMMAND_UNKNOWN if host is not None else ADDRESS_UNKNOWN)
        raise NotConnect(host or "", port)
    return Asked(host, port, reader.left)


async def _host(reader: _Reader, kind: int) -> str | None:
    if kind == _IPV4:
        return str(ipaddress.IPv4Address(await reader.take(4)))
    if kind == _IPV6:
        return str(ipaddress.IPv6Address(await reader.take(16)))
    if kind == _NAME:
        return (await reader.take((await reader.take(1))[0])).decode("ascii", "replace")
    return None


async def accept(stream: ByteStream) -> None:
    await stream.write(_reply(SUCCEEDED))


async def refuse(stream: ByteStream, code: int) -> None:
    await stream.write(_reply(code))
    await stream.end()


def _reply(code: int) -> bytes:
    return bytes((5, code, 0, _IPV4, 0, 0, 0, 0, 0, 0))
