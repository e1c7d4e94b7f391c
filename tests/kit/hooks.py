"""Whoever is told of events: a small HTTP server of the test's own, on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Letter:
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Hook:
    """`answers` are given in turn, the last one for ever."""

    port: int
    answers: list[str]
    letters: asyncio.Queue[Letter] = field(default_factory=asyncio.Queue[Letter])
    silent: bool = False  # takes everything, and says nothing

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def letter(self) -> Letter:
        async with asyncio.timeout(10):
            return await self.letters.get()


@asynccontextmanager
async def hook(*answers: str) -> AsyncGenerator[Hook]:
    made = Hook(0, list(answers) or ["204 No Content"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            letter = Letter(first.split()[1], headers, await reader.readexactly(int(headers["content-length"])))
            if made.silent:
                made.letters.put_nowait(letter)
                await reader.read()
                return
            answer = made.answers.pop(0) if len(made.answers) > 1 else made.answers[0]
            writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            made.letters.put_nowait(letter)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
