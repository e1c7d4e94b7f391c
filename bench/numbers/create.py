"""A new machine, from the call to its first result with numpy and pandas: with nothing made ahead, and with one."""

from __future__ import annotations

import time

from bench import plain
from bench.house import House
from bench.measure import Result, in_turns, result

from . import work


async def measure_cold(house: House, count: int) -> list[Result]:
    async def ours() -> float:
        await house.settle(ahead=False)
        return await _create(house)

    async def theirs() -> float:
        await house.settle(ahead=False)
        sandbox = house.raw.prepare()
        try:
            began = time.perf_counter()
            answer = house.raw.restore(sandbox, house.template).run(work.BEGIN)
            took = time.perf_counter() - began
        finally:
            await house.raw.remove(sandbox)
        assert answer == work.EXPECTED
        return took

    mine, raw = await in_turns(count, ours, theirs)
    return [result("4", mine, raw, ("create and run, no sandbox made ahead", "runsc restore of the template, attach, go, run"))]


async def measure_warm(house: House, count: int) -> list[Result]:
    async def ours() -> float:
        await house.engine.keep_ready(house.image, house.template, house.limits, 1)
        await house.settle(ahead=True)
        return await _create(house)

    async def theirs() -> float:
        return plain.seconds(work.PLAIN)

    try:
        mine, plainly = await in_turns(count, ours, theirs)
    finally:
        await house.engine.keep_ready(house.image, house.template, house.limits, 0)
    return [result("3", mine, plainly, ("create and run, a sandbox restored ahead", "python3 started, both imported, answered"))]


async def _create(house: House) -> float:
    began = time.perf_counter()
    view = await house.machines.create()
    answer = await house.run(view.record.name, work.BEGIN)
    took = time.perf_counter() - began
    await house.machines.delete(view.record.name)
    assert answer == work.EXPECTED
    return took
