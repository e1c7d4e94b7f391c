"""One connection for many instructions, by both clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import everforge
from everforge.wire.errors import InvalidInput, MachineNotFound, StillRunning
from kit.service import Running
from kit.twins import connected

Client = everforge.AsyncEverforge


async def test_instructions_run_one_after_another_over_one_connection(client: Client) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        await repl.run("x = 1")
        result = await repl.run("print('out'); x + 1")
        assert (result.value, result.stdout, result.instruction) == ("2", "out\n", 1)
        assert [line async for line in repl.stream("print(1); print(2)")] == ["1", "2"]
        await repl.ping()


async def test_several_at_once_each_get_their_own(client: Client) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        results = await asyncio.gather(*(repl.run(f"print({i}); {i}") for i in range(8)))
    assert [(result.value, result.stdout) for result in results] == [(str(i), f"{i}\n") for i in range(8)]


async def test_one_can_be_interrupted_while_another_waits_for_its_result(client: Client) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        instruction = await repl.exec("print('begun'); hang()", timeout_seconds=60)
        waiting = asyncio.ensure_future(instruction.result())
        while not await repl.interrupt():
            await asyncio.sleep(0.01)
        assert (await waiting).end == "interrupted"


async def test_one_can_be_interrupted_by_its_number(client: Client) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        running, waiting = await repl.exec("hang()", timeout_seconds=60), await repl.exec("2")
        assert await repl.interrupt(waiting.number)
        assert (await running.info()).state != "ended"
        assert await repl.interrupt(running.number)
        assert [(await one.result()).end for one in (running, waiting)] == ["interrupted", "interrupted"]
        assert not await repl.interrupt(running.number)


async def test_a_wait_has_its_deadline(client: Client) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        instruction = await repl.exec("hang()", timeout_seconds=60)
        with pytest.raises(StillRunning):
            await instruction.result(wait_seconds=0.1)
        await repl.interrupt()
        assert (await instruction.result()).end == "interrupted"


async def test_everybody_hears_everything(client: Client, server: Running) -> None:
    machine = await client.create()
    async with machine.repl() as repl, connected("async", server.url, server.token) as other:
        heard: list[dict[str, Any]] = []

        async def listen() -> None:
            async for entry in repl.entries():
                heard.append(entry)
                if entry["type"] == "ended":
                    return

        listening = asyncio.ensure_future(listen())
        await repl.ping()
        await other.machine(machine.name).run("print('from elsewhere')")
        await listening
    assert [entry["lines"] for entry in heard if entry["type"] == "output"] == [["from elsewhere"]]


async def test_a_later_repl_goes_on_where_an_earlier_one_was(client: Client) -> None:
    machine = await client.create()
    async with machine.repl() as repl:
        await repl.run("print('one')")
        position = repl.position
    await machine.run("print('two')")
    async with machine.repl(after=position) as repl:
        async for entry in repl.entries():
            if entry["type"] == "output":
                assert entry["lines"] == ["two"]
                break


async def test_what_nobody_listened_to_is_read_from_the_tape(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_async", "_sync"):
        monkeypatch.setattr(f"everforge.client.{module}.channel.INBOX_ENTRIES_MAX", 3)
    machine = await client.create()
    async with machine.repl() as repl:
        early = await repl.exec("for i in range(20): tell(str(i))")
        await repl.run("'later'")  # reads, and has no use for what belongs to the other
        assert (await early.result()).stdout.split() == [str(i) for i in range(20)]


async def test_refusals_come_as_errors(client: Client) -> None:
    with pytest.raises(MachineNotFound):
        async with client.machine("nobody").repl():
            pass
    machine = await client.create()
    async with machine.repl() as repl:
        with pytest.raises(InvalidInput):
            await repl.run("1", timeout_seconds=-1)
        assert (await repl.run("1")).value == "1"
        await machine.delete()
        with pytest.raises(MachineNotFound):
            await repl.run("1")
