"""Wires are cut, servers restart: no line comes twice, none is lost, nothing is done twice, and what is not known is said."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

import everforge
from everforge.wire.errors import Uncertain, Unreachable
from kit.proxy import Proxy
from kit.service import Running, serving
from kit.twins import KINDS, connected

Client = everforge.AsyncEverforge


def lines_of(entries: list[dict[str, Any]]) -> list[str]:
    return [line for entry in entries if entry["type"] == "output" for line in entry["lines"]]


async def test_a_followed_tape_has_every_line_once_however_often_it_is_cut(client: Client, server: Running, wire: Proxy) -> None:
    machine = await client.create()
    for i in range(10):
        await server.machines.run(machine.name, f"for j in range(5): tell('{i}.' + str(j), 'x' * 50)")
    last, _ = await server.machines.exec(machine.name, "0")
    chance = random.Random(7)
    wire.answer_bytes_left = lambda: chance.randrange(300, 3000)
    wire.cut()
    entries: list[dict[str, Any]] = []
    async for entry in machine.tape(follow=True):
        entries.append(entry)
        if entry["type"] == "ended" and entry["instruction"] == last:
            break
    assert [line for line in lines_of(entries) if line != "x" * 50] == [f"{i}.{j}" for i in range(10) for j in range(5)]
    assert wire.connections > 5


async def test_a_cut_between_a_request_and_its_answer_does_nothing_twice(client: Client, server: Running, wire: Proxy) -> None:
    machine = await client.create()
    await machine.run("x = 0")
    cuts = iter([0, 0])
    wire.answer_bytes_left = lambda: next(cuts, 1 << 30)
    wire.cut()
    assert (await machine.run("x += 1; x")).value == "1"
    cuts = iter([0, 0])
    wire.cut()
    created = await client.create()
    cuts = iter([0, 0])
    wire.cut()
    fork = await machine.fork()
    names = {found.name async for found in client.machines()}
    assert names == {machine.name, created.name, fork.name}


async def test_a_run_outlives_cuts_at_any_time(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    running = asyncio.ensure_future(machine.run("print('before'); sleep(0.3)", timeout_seconds=30))
    for _ in range(3):
        await asyncio.sleep(0.05)
        wire.cut()
    result = await running
    assert (result.end, result.stdout) == ("value", "before\n")


async def test_what_cannot_be_asked_twice_is_uncertain_after_a_cut(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    await machine.run("1")
    wire.answer_bytes_left = lambda: 0
    wire.cut()
    with pytest.raises(Uncertain, match="not known"):
        await machine.interrupt()


async def test_a_deletion_whose_answer_was_cut_is_done(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    cuts = iter([0])
    wire.answer_bytes_left = lambda: next(cuts, 1 << 30)
    wire.cut()
    await machine.delete()
    assert [found.name async for found in client.machines()] == []


async def test_a_repl_outlives_cuts_and_gives_every_line_once(client: Client, wire: Proxy) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        for i in range(6):
            wire.cut()
            result = await repl.run(f"for j in range(3): tell('{i}.' + str(j))\n{i}")
            assert (result.value, result.stdout.split()) == (str(i), [f"{i}.{j}" for j in range(3)])
        wire.cut()
        with pytest.raises(Uncertain):
            for _ in range(2):  # the first may find the old connection closed before anything was said
                wire.hold()
                asking = asyncio.ensure_future(repl.interrupt())
                await asyncio.sleep(0.1)
                wire.cut()
                wire.release()
                await asking
    assert wire.connections > 6


async def test_a_repl_that_hears_nothing_asks_and_then_comes_back(client: Client, wire: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_async", "_sync"):
        monkeypatch.setattr(f"everforge.client.{module}.channel.PING_SECONDS", 0.1)
        monkeypatch.setattr(f"everforge.client.{module}.channel.PONG_SECONDS", 0.3)
    machine = await client.create()
    async with machine.repl() as repl:
        instruction = await repl.exec("print('quiet'); sleep(0.5)", timeout_seconds=30)
        before = wire.connections
        assert (await instruction.result()).stdout == "quiet\n"
        assert wire.connections == before  # silence alone is no reason: it answers
        waiting = asyncio.ensure_future(repl.run("'back'"))
        wire.hold()
        while wire.connections == before:
            await asyncio.sleep(0.01)
        wire.release()
        assert (await waiting).value == "'back'"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_restart_of_the_server_goes_unnoticed(kind: str, server: Running, wire: Proxy) -> None:
    async with connected(kind, wire.url, server.token) as client:
        machine = await client.create()
        async with machine.repl() as repl:
            await repl.run("x = 1")
            running = await machine.exec("print('a'); sleep(0.4)", timeout_seconds=30)
            following = asyncio.ensure_future(running.result())
            async with serving(server.machines, folder=server.folder) as second:
                wire.target = second.url
                wire.refusing = True  # for a moment there is none
                wire.cut()
                await asyncio.sleep(0.2)
                wire.refusing = False
                assert (await following).stdout == "a\n"
                assert (await repl.run("x")).value == "1"
                assert (await machine.run("x")).value == "1"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_stays_away_is_given_up_in_the_end(kind: str, server: Running, wire: Proxy) -> None:
    async with connected(kind, wire.url, server.token, retry_seconds=0.3) as client:
        await client.whoami()
        wire.refusing = True
        wire.cut()
        with pytest.raises((Unreachable, Uncertain), match=wire.url):
            await client.whoami()
