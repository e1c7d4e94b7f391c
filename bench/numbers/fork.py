"""A fork of a live machine: how long its source stands still, and how soon the fork answers."""

from __future__ import annotations

from bench.house import House
from bench.measure import Result, in_turns, result

from . import work
from .hibernate import checkpoint_seconds
from .wake import answer_seconds


async def measure(house: House, count: int) -> list[Result]:
    source = await house.new(work.BEGIN)
    await house.machines.hibernate(source)
    sandbox = house.raw.prepare()
    stopped: list[float] = []
    try:
        hand = house.raw.restore(sandbox, await house.head(source))
        sleeper = str((await house.machines.fork(source))[0].record.name)

        async def checkpoint() -> float:
            hand.run(work.ANSWER)
            await house.settle(ahead=True)
            return checkpoint_seconds(house, sandbox, synced=False)

        async def answers() -> float:
            await house.run(source, work.ANSWER)
            await house.settle(ahead=True)
            house.marks.clear()
            [fork] = await house.machines.fork(source)
            # From before the order to stop until after the answer that all runs again: a little longer than the truth.
            stopped.append((house.marks.first("after go") - house.marks.first("before freeze")) * 1000)
            await house.settle(ahead=True)
            took = await answer_seconds(house, str(fork.record.name))
            await house.machines.delete(fork.record.name)
            return took

        async def wakes() -> float:
            await house.settle(ahead=True)
            took = await answer_seconds(house, sleeper)
            await house.machines.hibernate(sleeper)
            return took

        raw, forks, woken = await in_turns(count, checkpoint, answers, wakes)
    finally:
        await house.raw.remove(sandbox)
    await house.machines.delete(sleeper)
    await house.machines.delete(source)
    return [
        result("8-stopped", stopped[1:], raw, ("source stopped, from freeze to go", "runsc checkpoint")),
        result("8-answers", forks, woken, ("first run on a fork", "run on a sleeping machine")),
    ]
