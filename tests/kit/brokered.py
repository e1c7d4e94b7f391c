"""A host that has a secret, behind a door of kit.doorway; and a program that speaks TLS with it through that door."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import h11

from everforge.egress.authority import Authority
from everforge.egress.secrets import Secret

from .doorway import Doorway, Handler, doorway, own_authority, request

VALUE, PLACEHOLDER = b"s3cr3t-of-the-host", b"everforge-secret-0123456789abcdef"
HOST = "api.example.com"


def secret(**more: object) -> Secret:
    return Secret("API_KEY", PLACEHOLDER, VALUE, frozenset({(HOST, 443)}), **more)  # pyright: ignore[reportArgumentType]


class Api:
    """A real server outside, which keeps what it was sent and echoes it."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.authority = Authority.in_folder(Path(folder))
        self.requests: list[tuple[bytes, dict[bytes, bytes], bytes]] = []
        self.heads: list[bytes] = []  # as they came, of one that is only answering
        self.extra: list[tuple[bytes, bytes]] = []
        self.name = HOST

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.certificate)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(self.authority.context(self.name))
        state = h11.Connection(h11.SERVER)
        while True:
            body, request = b"", None
            while not isinstance(event := state.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    state.receive_data(await reader.read(65536))
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.ConnectionClosed):
                    return
            assert request is not None
            self.requests.append((bytes(request.target), {bytes(k): bytes(v) for k, v in request.headers}, body))
            told = b"\n".join([request.target, *(k + b": " + v for k, v in request.headers), body])
            for one in (
                h11.Response(status_code=200, headers=[(b"content-length", b"%d" % len(told)), *self.extra]),
                h11.Data(data=told),
                h11.EndOfMessage(),
            ):
                writer.write(state.send(one) or b"")
            await writer.drain()
            if state.our_state is h11.MUST_CLOSE:
                writer.close()
                return
            state.start_next_cycle()


@asynccontextmanager
async def api_behind_the_door(held: Secret | None = None, rule: str = HOST) -> AsyncGenerator[tuple[Doorway, Api]]:
    api = Api()
    held = held or secret()
    async with doorway(
        "list", rule, server=api.serve, names={HOST: ["93.184.216.34"], "other.example.com": ["93.184.216.35"]}, secrets=[held], trust=api.trust
    ) as d:
        yield d, api


class Tls:
    """A program in the machine that trusts the machine's certificates: the real servers' and the door's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, text: bytes) -> bytes:
        self.writer.write(text)
        async with asyncio.timeout(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return head + await self.reader.readexactly(length)


@asynccontextmanager
async def tls(d: Doorway, api: Api, host: str = HOST, port: int = 443) -> AsyncGenerator[Tls]:
    async with await d.connect() as program:
        program.writer.write(request(f"{host}:{port}", method="CONNECT"))
        head = await program.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        trust = ssl.create_default_context(cadata=own_authority().certificate + api.authority.certificate)
        await program.writer.start_tls(trust, server_hostname=host)
        yield Tls(program.reader, program.writer)


def get(path: bytes = b"/", *headers: bytes, host: str = HOST) -> bytes:
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: " + host.encode(), *headers, b"", b""])


def upgrade(*headers: bytes) -> bytes:
    return get(b"/", b"Connection: upgrade", b"Upgrade: websocket", *headers)


def answering(*answers: bytes) -> tuple[Api, Handler]:
    """A host that says these words to its requests, one after the other, whatever they are."""
    api = Api()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(api.authority.context(HOST))
        for answer in answers:
            api.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
        await reader.read()

    return api, say


@asynccontextmanager
async def asking(api: Api, say: Handler, *held: Secret) -> AsyncGenerator[tuple[Doorway, Tls]]:
    async with (
        doorway("list", HOST, server=say, names={HOST: ["93.184.216.34"]}, secrets=held or [secret()], trust=api.trust) as d,
        tls(d, api) as program,
    ):
        yield d, program
