"""Whoever gives a time gets an answer within it, whatever becomes of the server meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

import everforge
from everforge.wire.errors import StillRunning, Uncertain, Unreachable
from kit.proxy import Proxy
from kit.twins import KINDS, connected

Client = everforge.AsyncEverforge


@contextmanager
def takes_less_than(seconds: float) -> Generator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def patched(monkeypatch: pytest.MonkeyPatch, **values: float) -> None:
    for module in ("_async", "_sync"):
        for name, value in values.items():
            monkeypatch.setattr(f"everforge.client.{module}.channel.{name}", value)


async def test_a_wait_for_a_result_ends_in_time_though_the_server_falls_silent_on_the_way(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    instruction = await machine.exec("hang()", timeout_seconds=60)
    with takes_less_than(3):
        waiting = asyncio.ensure_future(instruction.result(wait_seconds=2.0))
        await asyncio.sleep(1.5)  # until then there are signs of life
        wire.hold()
        with pytest.raises(StillRunning):
            await waiting
    wire.release()
    assert await instruction.interrupt()
    assert (await instruction.result()).end == "interrupted"


async def test_the_time_of_a_run_begins_with_the_request(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    wire.hold()
    asyncio.get_running_loop().call_later(1.5, wire.release)
    with takes_less_than(3), pytest.raises(StillRunning):
        await machine.run("hang()", timeout_seconds=60, wait_seconds=2)
    await machine.interrupt()


async def test_a_wait_over_a_repl_ends_in_time_though_the_server_is_away(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        instruction = await repl.exec("hang()", timeout_seconds=60)
        wire.refusing = True
        wire.cut()
        with takes_less_than(5), pytest.raises(StillRunning):
            await instruction.result(wait_seconds=0.5)
        wire.refusing = False
        assert await instruction.interrupt()
        assert (await instruction.result()).end == "interrupted"


async def test_a_request_that_is_never_answered_is_given_up(client: Client, wire: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await client.create()
    patched(monkeypatch, SILENCE_SECONDS=0.3)
    async with machine.repl() as repl:
        wire.hold()
        with takes_less_than(10), pytest.raises(Uncertain, match=r"has not answered for 0.3 seconds: whether exec was carried out is not known"):
            await repl.run("1")
        wire.release()


async def test_short_waits_one_after_another_find_out_that_a_connection_is_dead(client: Client, wire: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, PING_SECONDS=0.3, PONG_SECONDS=0.3)
    machine = await client.create()
    async with machine.repl() as repl:
        wire.hold()
        before = wire.connections
        async with asyncio.timeout(10):
            while wire.connections == before:
                with pytest.raises(StillRunning):
                    await anext(repl.entries(wait_seconds=0.1))
        wire.release()
        assert (await repl.run("1")).value == "1"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_takes_connections_and_says_no_more_is_given_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, PING_SECONDS=0.02, PONG_SECONDS=0.02, RECONNECT_SECONDS=0.5)
    welcomed = 0

    async def welcome(socket: ServerConnection) -> None:
        nonlocal welcomed
        welcomed += 1
        await socket.send('{"type":"connected","position":0}')
        await socket.wait_closed()

    async with serve(welcome, "127.0.0.1", 0) as listener:
        port = next(iter(listener.sockets)).getsockname()[1]
        async with connected(kind, f"http://127.0.0.1:{port}", "a.b") as client:
            with takes_less_than(20), pytest.raises(Unreachable, match="no server answers"):
                await client.machine("x").repl().ping()
    assert welcomed > 1
