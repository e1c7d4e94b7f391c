"""The numbers of the server, held loosely: `make bench` measures them as they are promised. Each is a ratio of two things done here, in one run."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.measure import in_turns
from bench.memory import rss_mb
from bench.numbers.command import seconds
from bench.numbers.crowd import seconds_each
from bench.numbers.door import CODE, Http
from bench.numbers.flood import watched
from bench.service import Server, started

from kit.real import give_template, until_gone

PLAIN = [sys.executable, "-c", "pass"]
LINES = 100_000
PRINT = f"for i in range({LINES}): print(i)"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory(prefix="ef-") as folder:
        data = Path(folder)
        (data / "everforge.toml").write_text('image = "minimal"\nready_sandboxes = 0\n')
        give_template(data)
        async with started(data) as server:
            yield server
        await until_gone(data)


@pytest.mark.gvisor
async def test_an_instruction_costs_a_fraction_of_a_python_that_is_started_for_it(server: Server) -> None:
    door = Http(server, await server.create())
    async with server.talk(await server.create()) as talk:

        async def socket() -> float:
            began = time.perf_counter()
            assert await talk.run(CODE) == "2"
            return time.perf_counter() - began

        async def http() -> float:
            began = time.perf_counter()
            assert door.run() == "2"
            return time.perf_counter() - began

        async def plain() -> float:
            return seconds(PLAIN, dict(os.environ))

        on_socket, over_http, started_anew = map(statistics.median, await in_turns(20, socket, http, plain))
        door.close()
    assert on_socket < started_anew
    assert over_http < 2 * started_anew


@pytest.mark.gvisor
async def test_machines_do_not_wait_for_each_other(server: Server) -> None:
    async with server.talk(await server.create()) as one, server.talk(await server.create()) as two, server.talk(await server.create()) as three:

        async def alone() -> float:
            return await seconds_each([one.run], 0.5)

        async def together() -> float:
            return await seconds_each([one.run, two.run, three.run], 0.5)

        by_itself, of_three = map(statistics.median, await in_turns(3, alone, together))
    assert of_three < 1.5 * by_itself  # for each instruction: three at once are done in less time than one after the other


@pytest.mark.gvisor
async def test_many_lines_reach_a_client_and_the_server_keeps_none_of_them(server: Server) -> None:
    before: list[float] = []
    peaks: list[float] = []
    async with server.talk(await server.create()) as talk:

        async def ours() -> float:
            before.append(rss_mb([server.pid]))
            took, peak = await watched(talk, PRINT, server.pid)
            peaks.append(peak)
            return took

        async def plain() -> float:
            return seconds([sys.executable, "-c", PRINT], dict(os.environ))

        printed, plainly = map(statistics.median, await in_turns(3, ours, plain))
        assert talk.lines == 4 * LINES
    assert printed < 30 * plainly
    assert peaks[-1] < 1.5 * before[1]


def test_help_is_there_in_a_few_times_the_start_of_python() -> None:
    everforge = str(Path(sys.executable).with_name("everforge"))
    shown, plain = (statistics.median(seconds(command, dict(os.environ)) for _ in range(5)) for command in ([everforge, "--help"], PLAIN))
    assert shown < 12 * plain
