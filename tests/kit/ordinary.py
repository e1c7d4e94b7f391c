"""What an ordinary user without root does in a test: survival through sleep, and twenty forks. Run as `python -m kit.ordinary DATA`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from everforge.machines.requests import NewMachine
from kit.forking import fork_and_compare
from kit.real import real_machines, until_gone
from kit.stepclock import StepClock
from kit.survival import build, check_nothing_runs_while_it_sleeps, finish, live_through

ROUNDS = 50


async def main(data: Path) -> None:
    assert os.geteuid() != 0
    clock = StepClock()
    async with real_machines(data, steps=clock.steps) as machines:
        name = (await machines.create(NewMachine())).record.name
        await build(machines, name)
        await check_nothing_runs_while_it_sleeps(machines, name, data, with_cgroups=False)
        await live_through(machines, name, data, ROUNDS)
        await finish(machines, name, ROUNDS)
        await machines.delete(name)
        await fork_and_compare(machines, clock)
    await until_gone(data)
    print("holds for uid", os.geteuid())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).absolute()))
