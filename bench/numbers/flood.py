"""A million printed lines, until the last of them and the end are with a client, against a Jupyter kernel; and the server's memory meanwhile."""

from __future__ import annotations

import asyncio
import time

from bench import jupyter
from bench.house import House
from bench.measure import Result, in_turns, result
from bench.memory import rss_mb
from bench.service import Talk, started

LINES = 1_000_000
CODE = f"for i in range({LINES}): print(i)"
LOOK_SECONDS = 0.05


async def measure(house: House, count: int) -> list[Result]:
    before: list[float] = []
    peaks: list[float] = []
    with jupyter.kernel() as kernel:
        async with started(house.folder / "service") as server, server.talk(await server.create()) as talk:

            async def ours() -> float:
                before.append(rss_mb([server.pid]))
                heard = talk.lines
                took, peak = await watched(talk, CODE, server.pid)
                peaks.append(peak)
                assert talk.lines - heard == LINES
                return took

            async def theirs() -> float:
                took, lines = kernel.seconds(CODE)
                assert lines == LINES
                return took

            mine, cells = await in_turns(count, ours, theirs)
    sides = ("print in a machine, until its end is with the client", "print in a kernel, until it is idle")
    memory = ("the server at its peak meanwhile", "the server before")
    return [
        result("9", mine, cells, sides, notes={"lines per second": LINES / sorted(mine)[len(mine) // 2] * 1000}),
        result("9-memory", peaks[1:], before[1:], memory, unit="MB", notes={"after the last MB": peaks[-1]}),
    ]


async def watched(talk: Talk, code: str, pid: int) -> tuple[float, float]:
    """Run this: the time that it took, and the most memory that this process was seen to take meanwhile."""
    peak = 0.0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, rss_mb([pid]))
            await asyncio.sleep(LOOK_SECONDS)

    watching = asyncio.ensure_future(watch())
    try:
        began = time.perf_counter()
        await talk.run(code)
        took = time.perf_counter() - began
    finally:
        watching.cancel()
    return took, max(peak, rss_mb([pid]))
