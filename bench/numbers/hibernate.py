"""Going to sleep: from the call until memory and record are on the disk, against a checkpoint by hand and an fsync of its files."""

from __future__ import annotations

import shutil
import time

from bench.house import House
from bench.measure import Result, in_turns, result
from bench.raw import RawSandbox, sync

from . import work


async def measure(house: House, count: int) -> list[Result]:
    name = await house.new(work.BEGIN)
    await house.machines.hibernate(name)
    sandbox = house.raw.prepare()
    whole: list[float] = []
    try:
        hand = house.raw.restore(sandbox, await house.head(name))

        async def ours() -> float:
            await house.run(name, work.ANSWER)
            await house.settle(ahead=True)
            house.marks.clear()
            began = time.perf_counter()
            await house.machines.hibernate(name)
            whole.append((time.perf_counter() - began) * 1000)
            return house.marks.first("after record sleep_recorded") - began

        async def theirs() -> float:
            hand.run(work.ANSWER)
            await house.settle(ahead=True)
            return checkpoint_seconds(house, sandbox, synced=True)

        mine, raw = await in_turns(count, ours, theirs)
    finally:
        await house.raw.remove(sandbox)
    await house.machines.delete(name)
    notes = {"until its sandbox is gone too ms": sorted(whole)[len(whole) // 2]}
    return [result("7", mine, raw, ("hibernate until recorded and synced", "runsc checkpoint, fsync of its files and folder"), notes=notes)]


def checkpoint_seconds(house: House, sandbox: RawSandbox, *, synced: bool) -> float:
    folder = house.folder / "checkpoint"
    folder.mkdir()
    try:
        began = time.perf_counter()
        house.raw.checkpoint(sandbox, folder)
        if synced:
            sync(folder)
        return time.perf_counter() - began
    finally:
        shutil.rmtree(folder)
