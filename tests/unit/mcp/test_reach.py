"""The Everforge server goes away while somebody waits for it: that is told soon, with what came by then, and the next call finds it where it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult

from everforge.mcp import reach
from everforge.mcp.reach import Ask, Lost, Reach
from everforge.wire.errors import MachineNotFound, StillRunning, Unreachable
from kit.house import QUICK, House
from kit.mcpserving import WAIT_SECONDS, data_of, text_of, until
from kit.service import QUIET, serving

from .conftest import connector


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "LOST_SECONDS", 1.0)
    monkeypatch.setattr(reach, "ASK_SECONDS", 0.05)
    monkeypatch.setattr(reach, "RETRY_SECONDS", 0.2)


class Comings:
    """A server that goes and comes, in front of machines that stay."""

    def __init__(self, house: House, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._house, self._folder, self._monkeypatch = house, folder, monkeypatch
        self._open = AsyncExitStack()
        self.port = 0

    async def come(self, port: int = 0) -> None:
        running = await self._open.enter_async_context(serving(self._house.machines, replace(QUIET, port=port), folder=self._folder))
        self.port = int(running.url.rpartition(":")[2])
        self._monkeypatch.setenv("EVERFORGE_URL", running.url)
        self._monkeypatch.setenv("EVERFORGE_TOKEN", running.token)

    async def go(self) -> None:
        await self._open.aclose()


@asynccontextmanager
async def comings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Comings]:
    house = House(QUICK)
    await house.start()
    server = Comings(house, folder, monkeypatch)
    try:
        await server.come()
        yield server
    finally:
        await server.go()
        await house.close()


async def begun(client: Client, tool: str, arguments: dict[str, Any], line: str = "begun") -> asyncio.Task[CallToolResult]:
    """A call whose code has said that."""
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    call = asyncio.create_task(client.call_tool(tool, arguments, progress_callback=hear))
    await until(lambda: line in told or call.done())
    assert not call.done()
    return call


async def test_code_whose_server_goes_away_is_answered_soon_and_read_where_it_comes_back(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with comings(tmp_path, monkeypatch) as server, connector("auto")() as client:
        call = await begun(client, "run_python", {"code": "tell('begun')\nhang()", "timeout_seconds": 600})
        before, gone = server.port, time.monotonic()
        await server.go()
        result = await asyncio.wait_for(call, WAIT_SECONDS)
        assert time.monotonic() - gone < 10
        assert result.is_error
        data = result.structured_content
        assert (data["end"], data["stdout"]) == ("unknown", "begun\n")
        assert text_of(result).startswith("begun\n[")
        assert "connection to the Everforge server was lost" in text_of(result)
        assert "may still run" in text_of(result)
        assert f'read_output(machine="{data["machine"]}", instruction=0)' in text_of(result)
        away = await client.call_tool("run_python", {"code": "1"})
        assert text_of(away).startswith("Unreachable: ")
        while server.port == before:
            await server.go()
            await server.come()
        read = data_of(await client.call_tool("read_output", {"machine": data["machine"], "instruction": 0}))
        assert (read["text"], read["end"]) == ("begun\n", "running")
        data_of(await client.call_tool("interrupt", {"machine": data["machine"]}))
        assert data_of(await client.call_tool("run_python", {"code": "1", "machine": data["machine"]}))["value"] == "1"


async def test_a_server_that_only_restarts_is_waited_for(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "LOST_SECONDS", WAIT_SECONDS)
    async with comings(tmp_path, monkeypatch) as server, connector("auto")() as client:
        call = await begun(client, "run_python", {"code": "tell('begun')\nhang()", "timeout_seconds": 4})
        await server.go()
        await asyncio.sleep(0.5)
        await server.come(server.port)
        result = await asyncio.wait_for(call, WAIT_SECONDS)
        assert (result.structured_content["end"], result.structured_content["stdout"]) == ("timed_out", "begun\n")


async def test_whoever_waited_for_no_longer_than_that_is_not_told_that_it_still_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "LOST_SECONDS", WAIT_SECONDS)
    async with comings(tmp_path, monkeypatch) as server, connector("auto")() as client:
        running = await begun(client, "run_python", {"code": "tell('begun')\nhang()", "timeout_seconds": 600, "wait_seconds": 3})
        reading = asyncio.create_task(client.call_tool("read_output", {"instruction": 0, "wait_seconds": 3}))
        await asyncio.sleep(0.5)
        await server.go()
        assert (await asyncio.wait_for(running, WAIT_SECONDS)).structured_content["end"] == "unknown"
        read = await asyncio.wait_for(reading, WAIT_SECONDS)
        assert text_of(read).startswith("Unreachable: the connection to the Everforge server was lost, and nobody has answered there since.")


async def test_the_tools_of_forevervm_say_the_same(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with comings(tmp_path, monkeypatch) as server, connector("auto")() as client:
        name = text_of(await client.call_tool("create-python-repl", {}))
        call = await begun(client, "run-python-in-repl", {"pythonCode": "tell('begun')\nhang()", "replId": name})
        await server.go()
        result = await asyncio.wait_for(call, WAIT_SECONDS)
        said = json.loads(text_of(result))
        assert (result.is_error, said["output"], said["replId"]) == (True, "begun", name)
        assert said["error"].startswith("Error: The connection to the Everforge server was lost")
        assert f'read_output(machine="{name}", instruction=0)' in said["error"]


async def for_ever() -> None:
    await asyncio.sleep(WAIT_SECONDS)


async def refused() -> None:
    raise Unreachable("nobody")


@pytest.mark.parametrize("ask", [refused, for_ever])
async def test_a_server_that_answers_nobody_for_so_long_is_lost(ask: Ask) -> None:
    watched, began = Reach(), time.monotonic()
    watched.tell(connected=False)
    with pytest.raises(Lost):
        async with watched.watched(ask):
            await for_ever()
    assert 0.9 < time.monotonic() - began < 5


@pytest.mark.parametrize("failure", [None, MachineNotFound("gone")], ids=["an answer", "a refusal"])
async def test_a_cut_that_was_another_calls_alone_is_nobodys_loss(failure: Exception | None) -> None:
    async def ask() -> None:
        if failure:
            raise failure

    watched = Reach()
    watched.tell(connected=False)
    async with watched.watched(ask):
        await asyncio.sleep(2.5)
    with pytest.raises(StillRunning):
        async with watched.watched(ask):
            raise StillRunning("it does")


async def test_who_is_back_in_time_is_not_lost_and_what_takes_its_time_may() -> None:
    watched = Reach()
    async with watched.watched(refused):
        await asyncio.sleep(1.5)
        watched.tell(connected=False)
        await asyncio.sleep(0.5)
        watched.tell(connected=True)
        await asyncio.sleep(1.5)
    with pytest.raises(TimeoutError) as raised:
        async with watched.watched(refused):
            raise TimeoutError
    assert not isinstance(raised.value, Lost)
