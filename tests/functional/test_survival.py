"""Must show 1: everything a Python process can hold goes on after a sleep, fifty times in a row, and nothing is left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from kit.folders import strangers
from kit.real import cgroups_of, descriptors, mounts_of, sandboxes_of
from kit.survival import build, check_round

pytestmark = pytest.mark.gvisor


async def test_everything_goes_on_from_where_it_was(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine(tags={"kind": "survivor"}))).record.name
    await build(machines, name)
    sandbox = str((await machines.get(name)).record.sandbox)
    assert any(sandbox in command for command in sandboxes_of(data).values()), "the test looks at the wrong thing"
    await machines.hibernate(name)
    assert (await machines.get(name)).state == "asleep"
    assert await machines.memory_bytes(name) == 0
    assert not [c for c in sandboxes_of(data).values() if sandbox in c], "a process of the sleeping machine runs on the host"
    assert not [c for c in cgroups_of(data) if sandbox in c], "a cgroup of the sleeping machine is left"
    assert not [f for f in data.rglob("*") if sandbox in f.name], "a file of its sandbox is left"
    await check_round(machines, name, 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_fifty_rounds_with_growing_data_leave_nothing_behind(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine())).record.name
    await build(machines, name)
    marks: list[tuple[int, int, int, int]] = []
    for round in range(50):
        await machines.hibernate(name)
        await check_round(machines, name, round)
        await asyncio.sleep(0)
        marks.append((len(sandboxes_of(data)), descriptors(), len(cgroups_of(data)), len(mounts_of(data))))
    settled, last = marks[10:20], marks[-10:]
    for what, before, after in zip(
        ("processes", "descriptors", "cgroups", "mounts"), zip(*settled, strict=True), zip(*last, strict=True), strict=True
    ):
        assert max(after) <= max(before) + 2, f"{what} grew from {before} to {after}"
    points = await machines.points(name)
    assert {str(p.snapshot) for p in points} <= {p.name for p in (data / "snapshots").iterdir()}
    assert strangers(data / "snapshots", {str(p.snapshot) for p in points}) == set()
