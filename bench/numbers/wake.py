"""A sleeping machine with numpy and pandas loaded, from the call to its first result."""

from __future__ import annotations

import time

from bench import plain
from bench.house import House
from bench.measure import Result, in_turns, result

from . import work


async def measure(house: House, count: int) -> list[Result]:
    name = await house.new(work.BEGIN)
    await house.machines.hibernate(name)

    async def ours() -> float:
        await house.settle(ahead=True)
        took = await answer_seconds(house, name)
        await house.machines.hibernate(name)
        return took

    async def restore() -> float:
        await house.settle(ahead=True)
        return await raw_answer_seconds(house, name)

    async def plainly() -> float:
        await house.settle(ahead=True)
        return plain.seconds(work.PLAIN)

    mine, raw, started = await in_turns(count, ours, restore, plainly)
    await house.machines.delete(name)
    wake = "run on a sleeping machine, an empty sandbox made ahead"
    return [
        result("5-restore", mine, raw, (wake, "runsc restore of the same snapshot, attach, go, run")),
        result("5-plain", mine, started, (wake, "python3 started, both imported, answered")),
    ]


async def answer_seconds(house: House, name: str) -> float:
    began = time.perf_counter()
    answer = await house.run(name, work.ANSWER)
    took = time.perf_counter() - began
    assert answer == work.EXPECTED
    return took


async def raw_answer_seconds(house: House, name: str) -> float:
    folder = await house.head(name)
    sandbox = house.raw.prepare()
    try:
        began = time.perf_counter()
        answer = house.raw.restore(sandbox, folder).run(work.ANSWER)
        took = time.perf_counter() - began
    finally:
        await house.raw.remove(sandbox)
    assert answer == work.EXPECTED
    return took
