"""Connecting to the outside: names are looked up here, every address is checked, and the one that was checked is the one connected to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from . import addresses
from .addresses import Address
from .bytestream import ByteStream, Cut, SocketStream
from .names import Lookup, look_up
from .tls import TlsStream
from .upstream import Dial, Upstream

HOST_NAME = "host.everforge.internal"  # the server's own computer, where its owner has opened a port of it: to a machine, 127.0.0.1 is itself
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
LOOKUP_SECONDS = 10.0
CONNECT_SECONDS = 10.0
ADDRESSES_MAX = 4  # tried one after the other
BUFFER_BYTES = 256 * 1024


def with_aliases(places: Iterable[tuple[str, int]]) -> frozenset[tuple[str, int]]:
    """Those on this computer by the name that machines have for it, too."""
    found = frozenset(places)
    return found | {(HOST_NAME, port) for host, port in found if host in LOOPBACK}


class Closed(Exception):
    """The address is one that no policy opens. It is for the owner's record: a machine need not learn where the names of this network lead."""

    def __init__(self, sentence: str, address: str) -> None:
        super().__init__(sentence)
        self.address = address


class Unreachable(Exception):
    """It may be reached, but is not there."""


async def dial(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(address, port, limit=BUFFER_BYTES)


@dataclass(frozen=True, slots=True)
class Outside:
    """`opened` are hosts and ports that the owner of the server has opened exactly, though they lie in the closed networks. A name opens wherever it
    leads, but for what gives away passwords: that is opened by its address or not at all."""

    opened: frozenset[tuple[str, int]] = frozenset()
    lookup: Lookup = field(default=look_up)
    dial: Dial = field(default=dial)  # to an address that was checked
    upstream: Upstream | None = None  # this computer's own way to the package index

    async def connect(self, host: str, port: int, *, index: bool = False, tls: ssl.SSLContext | None = None) -> tuple[ByteStream, str]:
        """The connection and the address that it goes to; with `tls` it is sure that the host is who it says. Raises Closed, Unreachable."""
        if index and self.upstream is not None and self.upstream.serves(host):
            return await self._through(self.upstream, host, port, tls)
        found = await self.check(host, port, index=index)
        problem = ""
        for address in found[:ADDRESSES_MAX]:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    stream = SocketStream(*await self.dial(str(address), port))
                    return (stream if tls is None else await _secured(stream, tls, self._own_name(host, port))), str(address)
            except (OSError, TimeoutError, Cut) as e:
                problem = str(e) or f"no answer within {CONNECT_SECONDS:g} s"
        raise Unreachable(f"{host}:{port} cannot be reached: {problem}")

    def _own_name(self, host: str, port: int) -> str:
        """What it must prove to be. For this computer machines have a name that no certificate knows: there it is the one that its owner opened."""
        own = [opened for opened, at in self.opened if at == port and opened in LOOPBACK]
        return min(own) if host == HOST_NAME and own else host

    async def _through(self, upstream: Upstream, host: str, port: int, tls: ssl.SSLContext | None) -> tuple[ByteStream, str]:
        """Names are the proxy's to look up; an address is checked here, as always."""
        if addresses.parse(host) is not None:
            await self.check(host, port, index=True)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                stream = await upstream.connect(host, port, self.dial)
                return (stream if tls is None else await _secured(stream, tls, host)), f"{upstream.host}:{upstream.port}"
        except (OSError, TimeoutError, Cut) as e:
            raise Unreachable(f"{host}:{port} cannot be reached: {str(e) or 'no answer'}") from e

    async def check(self, host: str, port: int, *, index: bool = False) -> Sequence[Address]:
        """Its addresses, all of them such as machines may reach. One bad one among good ones spoils them all: somebody tries something.

        `index`: the package index, or where it says that its files lie. In a company that may well be a private address; never this computer.
        """
        found = await self._addresses(host, port)
        closed = addresses.is_metadata if (host, port) in self.opened else _near if index else _closed
        for address in found:
            if (str(address), port) not in self.opened and (why := closed(address)):
                raise Closed(f"{host} {'is' if str(address) == host else 'leads to'} {why}", str(address))
        return found

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        if host == HOST_NAME:
            return [IPv4Address("127.0.0.1")]
        if (literal := addresses.parse(host)) is not None:
            return [literal]
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await self.lookup(host, port)
        except (OSError, UnicodeError, TimeoutError) as e:
            raise Unreachable(f"no address is known for {host}: {str(e) or 'no answer'}") from e
        parsed = [address for text in found if (address := addresses.parse(text.partition("%")[0])) is not None]
        if not parsed:
            raise Unreachable(f"no address is known for {host}")
        return parsed


async def _secured(stream: SocketStream, context: ssl.SSLContext, host: str) -> TlsStream:
    secured = TlsStream(stream, context, host)
    try:
        await secured.begin()
    except BaseException:
        stream.cut()
        raise
    return secured


def _near(address: Address) -> str | None:
    return addresses.is_near(address) or ("this computer itself" if addresses.is_of_this_computer(address) else None)


def _closed(address: Address) -> str | None:
    return addresses.is_closed(address) or ("this computer itself" if addresses.is_of_this_computer(address) else None)
