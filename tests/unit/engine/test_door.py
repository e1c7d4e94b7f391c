"""Who may hold a warden's sandboxes, and when. The sandboxes themselves are not needed for that."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everforge.engine.warden import door, verbs
from everforge.engine.warden.channel import Channel
from everforge.engine.warden.sandboxes import Sandboxes
from everforge.wire.errors import SandboxLost
from everforge.wire.ids import new_sandbox_id


class NoSandboxes(Sandboxes):
    def __init__(self) -> None:
        self.pools_destroyed = 0

    def all(self) -> list[Any]:
        return []

    async def destroy_pooled(self) -> None:
        self.pools_destroyed += 1

    def adopt(self, verb: verbs.Adopt, descriptors: list[int]) -> Any:
        raise SandboxLost(f"there is no sandbox {verb.id}")


class Entrance:
    def __init__(self, path: Path) -> None:
        self._path = path
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(path))
        listener.listen()
        self._listener = listener
        self.door = door.Door(listener, {"limits": "none"}, rootless=False)
        self.sandboxes = self.door.sandboxes = NoSandboxes()
        self._serving = asyncio.create_task(self.door.serve())

    def connect(self) -> Channel:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(str(self._path))
        return Channel(sock)

    async def close(self) -> None:
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._listener.close()


@pytest.fixture
async def entrance(tmp_path: Path) -> AsyncIterator[Entrance]:
    entrance = Entrance(tmp_path / "s")
    yield entrance
    await entrance.close()


async def ask(channel: Channel, message: dict[str, Any]) -> dict[str, Any]:
    await channel.send(message)
    async with asyncio.timeout(10):
        packet = await channel.receive()
    assert packet is not None
    return packet[0]


HELLO = {"seq": 1, **verbs.encode(verbs.Hello(protocol=verbs.PROTOCOL))}


async def test_a_holder_is_greeted_with_what_the_warden_is(entrance: Entrance) -> None:
    channel = entrance.connect()
    answer = await ask(channel, HELLO)
    assert answer["ok"]["pid"] == os.getpid()
    assert answer["ok"]["facts"] == {"limits": "none"}
    channel.close()


async def test_another_protocol_is_refused(entrance: Entrance) -> None:
    channel = entrance.connect()
    answer = await ask(channel, {**HELLO, "protocol": 999})
    assert answer["error"]["code"] == "InvalidInput"
    channel.close()


async def test_a_second_holder_waits_until_the_first_lets_go(entrance: Entrance) -> None:
    first, second = entrance.connect(), entrance.connect()
    await ask(first, HELLO)
    waiting = asyncio.create_task(ask(second, HELLO))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    first.close()
    assert "ok" in await waiting
    assert entrance.sandboxes.pools_destroyed == 1
    second.close()


async def test_a_second_holder_is_turned_away_while_the_first_goes_on(entrance: Entrance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HANDOVER_SECONDS", 0.05)
    first, second = entrance.connect(), entrance.connect()
    await ask(first, HELLO)
    answer = await ask(second, HELLO)
    assert answer["error"]["code"] == "DataFolderBusy"
    assert await second.receive() is None
    assert "ok" in await ask(first, HELLO)
    first.close()
    second.close()


async def test_a_wrong_request_is_answered_with_an_error_and_does_no_harm(entrance: Entrance) -> None:
    channel = entrance.connect()
    for wrong in ({"verb": "run", "argv": ["sh"]}, {"verb": "start"}, {}, {"verb": "destroy", "id": "../x"}):
        answer = await ask(channel, {"seq": 5, **wrong})
        assert (answer["seq"], answer["error"]["code"]) == (5, "ProtocolError")
    assert (await ask(channel, {"seq": 6, **verbs.encode(verbs.List())}))["ok"] == {"sandboxes": [], "more": False}
    channel.close()


async def test_descriptors_that_nobody_asked_for_are_closed(entrance: Entrance) -> None:
    channel = entrance.connect()
    read, write = os.pipe()
    await channel.send(HELLO, [write])
    os.close(write)
    packet = await channel.receive()
    assert packet is not None
    assert packet[0]["error"]["code"] == "ProtocolError"
    assert await asyncio.to_thread(os.read, read, 1) == b""  # the warden's copy is closed too
    os.close(read)
    channel.close()


@pytest.fixture
def no_descriptor() -> Iterator[Callable[[], None]]:
    """Call it, and no more files can be opened, as on a full host; until the end of the test or until it is called again."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def switch() -> None:
        if resource.getrlimit(resource.RLIMIT_NOFILE) == before:
            os.close(free := os.dup(0))
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        else:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    yield switch
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_without_a_free_descriptor_a_newcomer_waits_and_then_is_served(
    entrance: Entrance, monkeypatch: pytest.MonkeyPatch, no_descriptor: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "ACCEPT_PAUSE_SECONDS", 0.01)
    channel = entrance.connect()
    no_descriptor()
    async with asyncio.timeout(10):
        while "nobody can come in" not in caplog.text:
            await asyncio.sleep(0.01)
    no_descriptor()
    assert "ok" in await ask(channel, HELLO)
    channel.close()


async def test_a_newcomer_who_cannot_be_watched_is_let_go(entrance: Entrance, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(pid: int) -> int:
        raise OSError(24, "Too many open files")

    channel = entrance.connect()
    monkeypatch.setattr(os, "pidfd_open", fails)
    async with asyncio.timeout(10):
        assert await channel.receive() is None
    channel.close()


async def test_descriptors_of_a_sandbox_that_cannot_be_adopted_are_closed(entrance: Entrance) -> None:
    channel = entrance.connect()
    read, write = os.pipe()
    verb = verbs.Adopt(id=new_sandbox_id(), engine="0" * 64, memory_mb=10, pooled=False)
    await channel.send({"seq": 1, **verbs.encode(verb)}, [write] * 3)
    os.close(write)
    packet = await channel.receive()
    assert packet is not None
    assert packet[0]["error"]["code"] == "SandboxLost"
    readable, _, _ = await asyncio.to_thread(select.select, [read], [], [], 10)
    assert readable, "the warden's copies are still open"
    os.close(read)
    channel.close()
