"""Machines on the real engine whose door leads to servers of the test's own, and what an attacker in a machine would type.

Names lead where the test says; what is dialled at a public address arrives at the test's server on loopback, and everything dialled is written down.
So no packet leaves the computer.
"""

from __future__ import annotations

import ast
import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from everforge.egress.limits import EgressLimits
from everforge.egress.outside import BUFFER_BYTES
from everforge.egress.packages import PackageIndex, PipSettings
from everforge.egress.settings import EgressSettings
from everforge.machines.doors import PolicyChange
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.store.egress import AttemptRecord
from kit.doorway import PUBLIC, serving
from kit.real import TESTED, real_machines, until_gone

TOOLS = '''
import os, socket, time, threading, urllib.request, urllib.error
def raw(data, seconds=10):
    """All that the door says to these bytes."""
    with socket.create_connection(("127.0.0.1", 3128), seconds) as s:
        s.sendall(data)
        said = b""
        try:
            while piece := s.recv(65536): said += piece
        except ConnectionResetError: pass
        return said.decode("latin-1")
def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as a: return a.status, a.read().decode()
    except urllib.error.HTTPError as e: return e.code, e.read().decode()
    except Exception as e: return type(e).__name__, str(e)
def plain(host):
    return raw(f"GET http://{host}/ HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n".encode())
def tunnel(target, then=b""):
    return raw(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode() + then)
def failing(action):
    """The name of the error."""
    try: action()
    except Exception as e: return type(e).__name__
'''


class Web:
    """A plain web server: /redirect?to=URL, /slow (a drop of text, and then nothing for ever), anything else says hello."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.open = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            await self._answer(reader, writer)
        finally:
            self.open -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heard.append(head)
        url = urlsplit(head.split()[1])
        if url.path == "/redirect":
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {parse_qs(url.query)['to'][0]}\r\nContent-Length: 0\r\n\r\n".encode())
        elif url.path == "/slow":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\ndrop")
            await reader.read()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()


@dataclass
class Outskirts:
    machines: Machines
    web: Web
    web_port: int  # opened by the owner of the server
    shut_port: int  # a server of this computer that nobody has opened
    shut: Web
    names: dict[str, Sequence[str]] = field(default_factory=lambda: {"example.com": [PUBLIC], "other.example": [PUBLIC]})
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    ports: dict[int, int] = field(default_factory=dict[int, int])  # where what is dialled at a public address arrives, if not at `web`

    async def lookup(self, host: str, port: int) -> Sequence[str]:
        if host not in self.names:
            raise OSError(f"{host} is not known")
        return self.names[host]

    async def dial(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((address, port))
        arrives = port if address == "127.0.0.1" else self.ports.get(port, self.web_port)
        return await asyncio.open_connection("127.0.0.1", arrives, limit=BUFFER_BYTES)

    async def create(self, egress: str = "none", *allow: str) -> str:
        name = str((await self.machines.create(NewMachine(egress=egress, egress_allow=list(allow) or None))).record.name)
        await self.ask(name, TOOLS)
        return name

    async def set(self, name: str, egress: str, *allow: str) -> None:
        await self.machines.update(name, egress=PolicyChange(egress, list(allow) if egress != "none" else None))

    async def ask(self, name: str, code: str, seconds: float = 30.0) -> Any:
        async with asyncio.timeout(2 * seconds):
            ended = await self.machines.run(name, code, timeout_seconds=seconds)
        assert ended.end == "value", ended
        return None if ended.value is None else ast.literal_eval(ended.value)

    async def log(self, name: str) -> Sequence[AttemptRecord]:
        """Newest first."""
        return await self.machines.forge.doors.log((await self.machines.get(name)).record.id, None, 1000)

    def limit(self, **limits: Any) -> None:
        """Of machines that begin from now on."""
        doors: Any = self.machines.forge.doors
        doors._world = replace(doors._world, limits=EgressLimits(**limits))


@asynccontextmanager
async def outskirts(image: str = TESTED.image) -> AsyncGenerator[Outskirts]:
    data = Path(tempfile.mkdtemp(prefix="ef-"))
    async with AsyncExitStack() as undo:
        undo.callback(shutil.rmtree, data, ignore_errors=True)
        web, shut = Web(), Web()
        web_port = await undo.enter_async_context(serving(web))
        shut_port = await undo.enter_async_context(serving(shut))
        egress = EgressSettings(egress="none", allow_hosts=(f"127.0.0.1:{web_port}",))
        machines = await undo.enter_async_context(real_machines(data, replace(TESTED, image=image), egress=egress))
        made = Outskirts(machines, web, web_port, shut_port, shut)
        doors: Any = machines.forge.doors
        index = PackageIndex(PipSettings(index_url=f"http://127.0.0.1:{web_port}/simple"))
        undo.push_async_callback(index.close)
        doors._index = index
        doors._world = replace(doors._world, outside=replace(doors._world.outside, lookup=made.lookup, dial=made.dial, upstream=None), index=index)
        yield made
    await until_gone(data)
