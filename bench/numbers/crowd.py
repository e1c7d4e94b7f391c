"""Many machines at once, each with a client that waits for one trivial instruction after the other: how many instructions a second in all, against
as many Jupyter kernels behind a Jupyter server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from bench.house import House
from bench.measure import Result, in_turns, result
from bench.notebooks import notebooks
from bench.service import Talk, started

from .door import CODE

MACHINES = 20
SAMPLE_SECONDS = 3.0


async def measure(house: House, count: int) -> list[Result]:
    async with notebooks(MACHINES, house.folder / "notebooks") as kernels, started(house.folder / "service") as server, AsyncExitStack() as opened:
        talks: list[Talk] = [await opened.enter_async_context(server.talk(await server.create())) for _ in range(MACHINES)]
        for talk in talks:
            await talk.run(CODE)

        async def ours() -> float:
            return await seconds_each([talk.run for talk in talks])

        async def theirs() -> float:
            return await seconds_each([kernel.run for kernel in kernels])

        mine, cells = await in_turns(count, ours, theirs)
    notes = {"ours per second": 1000 / sorted(mine)[len(mine) // 2], "kernels per second": 1000 / sorted(cells)[len(cells) // 2]}
    return [result("10", mine, cells, (f"{MACHINES} machines, time / instructions", f"{MACHINES} kernels, time / cells"), notes=notes)]


async def seconds_each(runs: Sequence[Callable[[str], Awaitable[object]]], sample_seconds: float = SAMPLE_SECONDS) -> float:
    """The whole time, divided by all that was done in it."""
    began = time.perf_counter()
    until = began + sample_seconds

    async def one_after_the_other(run: Callable[[str], Awaitable[object]]) -> int:
        done = 0
        while time.perf_counter() < until:
            await run(CODE)
            done += 1
        return done

    done = sum(await asyncio.gather(*(one_after_the_other(run) for run in runs)))
    return (time.perf_counter() - began) / done
