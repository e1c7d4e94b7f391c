"""A door with the real porter before it, in this process: programs of a test connect to the porter, servers of a test stand outside. No sandbox.

Names and addresses outside are the test's own: `names` tells where a name leads, and whatever is dialled arrives at the test's server on loopback, so
that no packet leaves the computer though the address is a public one.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets as random
import socket
import ssl
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from everforge.egress.attempts import Attempt
from everforge.egress.authority import Authority
from everforge.egress.door import Door, World
from everforge.egress.limits import EgressLimits
from everforge.egress.outside import BUFFER_BYTES, Outside
from everforge.egress.packages import PackageIndex, PipSettings
from everforge.egress.policy import Policy, make_policy
from everforge.egress.secrets import Secret
from everforge.egress.upstream import Upstream
from everforge.guest.porter import Porter
from everforge.wire import mux

PUBLIC = "93.184.216.34"
NONCE_BYTES = mux.NONCE_BYTES
PATIENCE_SECONDS = 10.0
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Notes:
    """A machine's journal, kept in memory."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.over: list[Attempt] = []
        self.limits_met: list[str] = []
        self._stirred = asyncio.Event()

    def began(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def ended(self, attempt: Attempt) -> None:
        self.over.append(attempt)
        self._stirred.set()

    def met(self, limit: str) -> None:
        self.limits_met.append(limit)

    async def until_over(self, count: int = 1) -> list[Attempt]:
        """Which comes a moment after the program has heard its answer."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.over) < count:
                self._stirred.clear()
                await self._stirred.wait()
        return self.over


@dataclass
class Far:
    """What lies outside: it answers lookups, and says who was dialled."""

    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    port: int = 0  # of the test's server, where every dialled connection ends
    looked_up: list[str] = field(default_factory=list[str])
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def lookup(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if host not in self.names:
            raise OSError(f"{host} is not known")
        return self.names[host]

    async def dial(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((address, port))
        return await asyncio.open_connection("127.0.0.1", self.port, limit=BUFFER_BYTES)


@dataclass
class Doorway:
    door: Door
    far: Far
    notes: Notes
    port: int  # where programs connect
    policy: Policy

    async def connect(self) -> Program:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return Program(reader, writer)

    async def ask(self, data: bytes) -> bytes:
        """What a program hears that sends this and then listens until the end."""
        async with await self.connect() as program:
            return await program.ask(data)

    def set(self, word: str, *rules: str) -> None:
        self.policy = make_policy(word, rules)


class Program:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def __aenter__(self) -> Program:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def ask(self, data: bytes) -> bytes:
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.rest()

    async def rest(self) -> bytes:
        """Until the end, be it a cut."""
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while data := await self.reader.read(65536):
                said += data
        return said

    async def answer(self) -> bytes:
        """Head and body of one answer that has a Content-Length."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
            return head + await self.reader.readexactly(length)


@cache
def own_authority() -> Authority:
    """A new one would cost every test some milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        return Authority.in_folder(Path(folder))


@asynccontextmanager
async def doorway(
    word: str = "public",
    *rules: str,
    server: Handler | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    opened: frozenset[tuple[str, int]] = frozenset(),
    index: PipSettings | None = None,
    secrets: Sequence[Secret] = (),
    trust: ssl.SSLContext | None = None,
    upstream: Upstream | None = None,
    **limits: Any,
) -> AsyncGenerator[Doorway]:
    async with contextlib.AsyncExitStack() as undo:
        far = Far({"example.com": [PUBLIC]} if names is None else names)
        if server is not None:
            far.port = await undo.enter_async_context(serving(server))
        inside, outside = socket.socketpair()
        notes = Notes()
        packages = PackageIndex(index or PipSettings(index_url="http://127.0.0.1:9/simple"))
        undo.push_async_callback(packages.close)
        world = World(
            Outside(opened | packages.configured, far.lookup, far.dial, upstream),
            packages,
            EgressLimits(**limits),
            own_authority(),
            trust or ssl.create_default_context(),
        )
        door = Door(outside, "tested", world, lambda: made.policy, lambda: secrets, notes)
        undo.push_async_callback(door.close)
        made = Doorway(door, far, notes, await undo.enter_async_context(porter(door, inside)), make_policy(word, rules))
        yield made


@asynccontextmanager
async def porter(door: Door, inside: socket.socket) -> AsyncGenerator[int]:
    """The guest's real one, on a thread. Gives the port where it listens."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    inside.setblocking(False)
    nonce = random.token_bytes(NONCE_BYTES)
    door.begin(nonce)
    thread = threading.Thread(target=Porter(listening, inside.fileno(), nonce).serve)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        inside.shutdown(socket.SHUT_RDWR)
        await asyncio.to_thread(thread.join, PATIENCE_SECONDS)
        assert not thread.is_alive()
        listening.close()
        inside.close()


@asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[int]:
    """A server of the test's own on loopback; its port."""
    tasks: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await handler(reader, writer)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class Canned:
    """Hears one request a connection, head and a body of known length, and answers with the same bytes always."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") -> None:
        self.answer = answer
        self.heard: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heard.append(head)
        lines = head.lower().split(b"\r\n")
        if length := next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0):
            self.heard[-1] += await reader.readexactly(length)
        elif b"transfer-encoding: chunked" in lines:
            self.heard[-1] += await reader.readuntil(b"0\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()


def index_page(*links: str) -> bytes:
    """The answer of a package index that has files there."""
    body = "".join(f"<a class=x href='{link}#sha256=1'>f</a>\n" for link in links).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def request(target: str = "http://example.com/", *headers: str, method: str = "GET", host: str | None = "example.com", body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
