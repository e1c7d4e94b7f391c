"""A trivial instruction: through keeper, tape and link, against the same guest in the same kind of sandbox, driven by hand over its pipes."""

from __future__ import annotations

import time

from bench.house import House
from bench.measure import Result, in_turns, percentile, result

from . import work

CODE = "1+1"
WARM_UP = 30  # the first ones of a fresh interpreter are slower


async def measure(house: House, count: int) -> list[Result]:
    name = await house.new(work.BEGIN)
    sandbox = house.raw.prepare()
    try:
        hand = house.raw.restore(sandbox, house.template)
        hand.run(work.BEGIN)

        async def ours() -> float:
            began = time.perf_counter()
            await house.machines.run(name, CODE)
            return time.perf_counter() - began

        async def theirs() -> float:
            began = time.perf_counter()
            hand.run(CODE)
            return time.perf_counter() - began

        await house.settle(ahead=True)
        await in_turns(WARM_UP, ours, theirs)
        mine, by_hand = await in_turns(count, ours, theirs)
    finally:
        await house.raw.remove(sandbox)
    await house.machines.delete(name)
    notes = {
        "ours p99 ms": percentile(mine, 99),
        "by hand p99 ms": percentile(by_hand, 99),
        "p99 ratio": percentile(mine, 99) / percentile(by_hand, 99),
    }
    return [result("trivial", mine, by_hand, ("exec and result, durable on the tape", "one write, reads until the end"), notes=notes)]
