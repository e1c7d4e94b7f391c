"""What an ordinary user without root does in a test: survival through sleep, and twenty forks. Run as `python -m kit.ordinary DATA`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from everforge.machines.requests import NewMachine
from kit.forking import fork_and_compare
from kit.real import cgroups_of, real_machines, sandboxes_of, until_gone
from kit.survival import build, check_round


async def main(data: Path) -> None:
    assert os.geteuid() != 0
    async with real_machines(data) as machines:
        name = (await machines.create(NewMachine())).record.name
        await build(machines, name)
        sandbox = str((await machines.get(name)).record.sandbox)
        await machines.hibernate(name)
        assert not [c for c in sandboxes_of(data).values() if sandbox in c], "a process of the sleeping machine runs on the host"
        assert not cgroups_of(data)
        for round in range(3):
            await check_round(machines, name, round)
            await machines.hibernate(name)
        await fork_and_compare(machines)
    await until_gone(data)
    print("holds for uid", os.geteuid())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).absolute()))
