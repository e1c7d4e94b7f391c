"""Code that runs: its progress is told, and a call that is cancelled stops it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from pathlib import Path

import anyio
import pytest
from mcp import Client

from everforge import AsyncEverforge
from everforge.mcp.calls import Link
from everforge.wire.errors import StillRunning
from kit.mcpserving import data_of, text_of, until

from .conftest import Connect


async def machine_of(forge: AsyncEverforge) -> str:
    [found] = [found.name async for found in forge.machines()]
    return found


async def end_of(forge: AsyncEverforge, number: int) -> str:
    return (await forge.machine(await machine_of(forge)).instruction(number).result(wait_seconds=20)).end


async def running(forge: AsyncEverforge) -> bool:
    return any([found.state == "busy" async for found in forge.machines()])


async def said(forge: AsyncEverforge, name: str) -> bool:
    """Has its second instruction said or shown anything?"""
    async with aclosing(forge.machine(name).instruction(1)._follow({}, 0.2)) as happenings:
        with suppress(StillRunning):
            async for _ in happenings:
                return True
    return False


async def test_progress_arrives_while_code_runs_with_its_lines_and_the_last_of_them(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    told: list[tuple[float, str | None]] = []
    seen = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        seen.set()

    async with connect() as client:
        call = asyncio.create_task(client.call_tool("run_python", {"code": "tell('one')\ntell('two')\nhang()"}, progress_callback=hear))
        await until(lambda: told and told[-1][1] == "two")
        assert not call.done()
        assert 1 <= told[-1][0] <= 2.1
        await forge.machine(await machine_of(forge)).interrupt()
        assert (await call).structured_content["end"] == "interrupted"


async def test_a_cancelled_call_interrupts_its_code_and_the_machine_goes_on(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    async with connect() as client:
        await client.call_tool("run_python", {"code": "x = 1"})
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "run_python", {"code": "hang()"})
                await until(lambda: running(forge))
                scope.cancel()
        assert await end_of(forge, 1) == "interrupted"
        assert data_of(await client.call_tool("run_python", {"code": "x"}))["value"] == "1"


async def test_a_client_that_goes_away_leaves_its_code_running(user: Path, connect: Connect, forge: AsyncEverforge) -> None:
    link = Link()
    async with connect(link=link) as client:
        await client.call_tool("run_python", {"code": "1"})
        call = asyncio.create_task(client.call_tool("run_python", {"code": "hang()"}))
        await until(lambda: running(forge))
        link.closed = True  # as a transport says it
        call.cancel()
    assert await running(forge)
    await forge.machine(await machine_of(forge)).interrupt()


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("tell('begun')\nhang()", "It had begun, and was stopped before its end."),
        ("show({'text': 'begun'})\nhang()", "It had begun, and was stopped before its end."),
        ("hang()", "It did not come to its end, and may never have begun."),
    ],
)
async def test_code_whose_machine_is_deleted_is_not_said_to_have_never_begun(
    code: str, hint: str, user: Path, client: Client, forge: AsyncEverforge
) -> None:
    name = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
    call = asyncio.create_task(client.call_tool("run_python", {"code": code}))
    await until(lambda: running(forge))
    if "begun" in code:
        await until(lambda: said(forge, name))
    await forge.machine(name).delete()
    result = await call
    assert (result.is_error, result.structured_content["end"]) == (True, "cancelled")
    assert hint in text_of(result)
    assert "the machine was deleted" in text_of(result)
    assert "before it began" not in text_of(result)
