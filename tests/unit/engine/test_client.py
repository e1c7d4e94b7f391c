"""The server's end of its warden: who answers at the socket may be one that is just about to end."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everforge.engine.gvisor import client
from everforge.engine.gvisor.client import Client, Places, WardenGone
from everforge.engine.warden.channel import Channel
from everforge.engine.warden.folders import Folders


class Warden:
    """Nothing but a socket: as many connections as it is told end unanswered, and the next ones are answered."""

    def __init__(self, listener: socket.socket, ending: int) -> None:
        self._listener = listener
        self._ending = ending
        self.connections = 0
        self._open: list[Channel] = []

    async def serve(self) -> None:
        while True:
            taken, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            channel = Channel(taken)
            self.connections += 1
            if self.connections <= self._ending:
                channel.close()
                continue
            self._open.append(channel)
            await channel.receive()
            await channel.send({"seq": 0, "ok": {"pid": os.getpid(), "facts": {}}})

    def close(self) -> None:
        for channel in self._open:
            channel.close()


@asynccontextmanager
async def warden(folders: Folders, ending: int) -> AsyncGenerator[Warden]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.setblocking(False)
        listener.bind(str(folders.socket))
        listener.listen()
        served = Warden(listener, ending)
        serving = asyncio.create_task(served.serve())
        yield served
        serving.cancel()
        await asyncio.wait([serving])
        served.close()


@pytest.fixture
def folders() -> Iterable[Folders]:
    with tempfile.TemporaryDirectory(prefix="ef-") as folder:  # short: it holds a socket
        yield Folders(Path(folder), Path(folder))


def a_client(folders: Folders) -> Client:
    def ignore(*_: Any) -> None:
        pass

    async def replaced(_: Client) -> None:
        pass

    return Client(Places(folders, folders.data, folders.data, 1.0), ignore, replaced, ignore)


async def test_a_warden_that_ends_with_a_server_in_its_queue_is_not_the_last_word(folders: Folders) -> None:
    """Its linger time is over; the next try finds another, or starts one."""
    async with warden(folders, ending=2) as served:
        opened = a_client(folders)
        await opened.open()
        assert opened.pid == os.getpid()
        assert served.connections == 3
        await opened.close()


async def test_a_warden_that_never_answers_is_said_to_do_so(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "START_SECONDS", 0.05)
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.001)
    async with warden(folders, ending=10**6) as served:
        with pytest.raises(WardenGone, match="did not answer"):
            await a_client(folders).open()
        assert served.connections > 1
