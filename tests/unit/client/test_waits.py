"""Whoever gives a time gets an answer within it, whatever becomes of the server meanwhile."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

import everforge
from everforge.wire.errors import ClientError, StillRunning, Uncertain, Unreachable
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


async def test_a_wait_for_one_that_calls_functions_ends_in_time_though_the_server_is_silent_from_the_first(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    number = (await machine.exec("hang()", timeout_seconds=60)).number
    wire.hold()
    with takes_less_than(10), pytest.raises(StillRunning, match=f"instruction {number} of {machine.name} has not ended yet"):
        async with asyncio.timeout(20):
            await machine.instruction(number).result(wait_seconds=0.5, functions={"ask": lambda: 1})
    wire.release()
    assert await machine.interrupt()


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


@asynccontextmanager
async def deaf() -> AsyncGenerator[tuple[str, list[asyncio.StreamWriter]]]:
    """The address of a server that greets whoever connects, and then reads nothing; and who has connected."""
    writers: list[asyncio.StreamWriter] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line.split(":", 1)[1].strip() for line in head.splitlines() if line.lower().startswith("sec-websocket-key:"))
        accept = base64.b64encode(hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
        greeting = b'{"type":"connected","position":0}'
        writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        writer.write(
            f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode()
            + bytes([0x81, len(greeting)])
            + greeting
        )

    listener = await asyncio.start_server(greet, "127.0.0.1", 0, limit=4096)
    async with listener:
        try:
            yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", writers
        finally:
            for writer in writers:
                writer.transport.abort()


LONG = "x = '" + "a" * 12_000_000 + "'"  # more than any buffer on the way takes


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_stops_reading_is_given_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, SILENCE_SECONDS=0.5)
    async with deaf() as (url, _), connected(kind, url, "a.b") as client, client.machine("x").repl() as repl:
        with takes_less_than(10), pytest.raises(Uncertain, match=r"has not answered for 0.5 seconds: whether exec was carried out is not known"):
            async with asyncio.timeout(20):
                await repl.exec(LONG)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wait_ends_in_time_though_a_server_that_stops_reading_cannot_even_be_asked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, SILENCE_SECONDS=2.0, PING_SECONDS=0.1, PONG_SECONDS=0.1)
    async with deaf() as (url, connections), connected(kind, url, "a.b") as client, client.machine("x").repl() as repl:
        sending = asyncio.ensure_future(repl.exec(LONG))
        await asyncio.sleep(0.1)
        with takes_less_than(5), pytest.raises(StillRunning):
            await anext(repl.entries(wait_seconds=0.5))
        with pytest.raises(Uncertain):
            await sending
        assert len(connections) == 1  # the request had all its time


@pytest.mark.parametrize("kind", KINDS)
async def test_a_repl_closes_though_the_server_has_stopped_reading(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_async", "_sync"):
        monkeypatch.setattr(f"everforge.client.{module}.socket.CLOSE_SECONDS", 0.3)
    async with deaf() as (url, _), connected(kind, url, "a.b") as client:
        repl = await client.machine("x").repl().__aenter__()
        sending = asyncio.ensure_future(repl.exec(LONG))
        await asyncio.sleep(0.1)
        with takes_less_than(10):
            async with asyncio.timeout(20):
                await repl.close()
    with pytest.raises(ClientError):
        await sending
