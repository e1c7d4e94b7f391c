"""A point costs what changed, on the disk as it is counted there, and is as good as a whole one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

INSTRUCTIONS = 30


def bytes_used(folder: Path) -> int:
    """What the file system has given away, each file once."""
    found: dict[int, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(parent, name))
            found[status.st_ino] = status.st_blocks * 512
    return sum(found.values())


async def until_packed(machines: Machines, data: Path, name: str, count: int) -> None:
    async with asyncio.timeout(120):
        while True:
            head = (await machines.get(name)).record.head
            others = [p.snapshot for p in await machines.points(name) if p.reason != "template" and p.snapshot != head]
            if len(others) >= count and not any((data / "snapshots" / id / "pages.img").exists() for id in others):
                return
            await asyncio.sleep(0.1)


async def test_thirty_points_cost_less_than_three_and_any_of_them_can_be_gone_back_to(machines: Machines, data: Path) -> None:
    snapshots = data / "snapshots"
    name = (await machines.create(NewMachine(history="each"))).record.name
    await machines.run(name, "import os, random; random.seed(1); big = random.randbytes(20_000_000); None")
    await machines.snapshot(name, "begin")
    await machines.hibernate(name)
    await until_packed(machines, data, name, 2)
    head = (await machines.get(name)).record.head
    whole = bytes_used(snapshots / str(head))
    before = bytes_used(snapshots)
    for i in range(INSTRUCTIONS):
        ended = await machines.run(name, f"x = {i}; open('x.txt', 'w').write('{i}'); None")
        assert ended.end == "value", ended
    await until_packed(machines, data, name, INSTRUCTIONS)
    assert bytes_used(snapshots) - before < 3 * whole, f"{INSTRUCTIONS} points, of {whole} bytes each if they were whole"
    for i in [*range(1, INSTRUCTIONS + 1, 7), INSTRUCTIONS]:
        await machines.rollback(name, instruction=i)
        ended = await machines.run(name, "x, open('x.txt').read(), len(big), big == random.Random(1).randbytes(20_000_000)")
        assert ended.value == f"({i - 1}, '{i - 1}', 20000000, True)"
    await machines.rollback(name, snapshot="begin")
    assert (await machines.run(name, "os.path.exists('x.txt'), 'x' in globals()")).value == "(False, False)"
    await machines.delete(name)
    async with asyncio.timeout(30):  # cleaned up behind the answer
        while [path for path in snapshots.iterdir() if path.name.startswith(".")]:
            await asyncio.sleep(0.02)
