from __future__ import annotations

import asyncio

import pytest

from everforge.machines.admission import Admission
from everforge.wire.errors import NoCapacity
from everforge.wire.ids import MachineId

PATIENCE_SECONDS = 30.0


class Sleeper:
    def __init__(self, id: str, idle_since: float | None = None) -> None:
        self.id = MachineId(id)
        self.idle_since = idle_since
        self.asked = asyncio.Event()
        self.may_sleep = asyncio.Event()
        self.admission: Admission | None = None

    async def make_room(self) -> bool:
        self.asked.set()
        await self.may_sleep.wait()
        assert self.admission is not None
        self.admission.release(self.id)
        self.idle_since = None
        return True


def house(budget_mb: int, *sleepers: Sleeper) -> Admission:
    admission = Admission(budget_mb, lambda: sleepers)
    for sleeper in sleepers:
        sleeper.admission = admission
    return admission


async def admit(admission: Admission, id: str, memory_mb: int, patience_seconds: float = PATIENCE_SECONDS) -> None:
    await admission.admit(MachineId(id), memory_mb, patience_seconds)


async def test_a_small_machine_does_not_stand_behind_a_large_one_that_waits_for_room() -> None:
    busy = Sleeper("busy")
    admission = house(1000, busy)
    await admit(admission, "busy", 600)
    large = asyncio.create_task(admit(admission, "large", 800))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await admit(admission, "small", 300)
    admission.release(MachineId("busy"))
    assert not large.done()
    admission.release(MachineId("small"))
    await asyncio.wait_for(large, 5)
    assert admission.taken_mb == 800


async def test_what_was_freed_for_one_machine_is_not_taken_by_another() -> None:
    first, second = Sleeper("first", 1.0), Sleeper("second", 2.0)
    admission = house(1000, first, second)
    await admit(admission, "first", 500)
    await admit(admission, "second", 500)
    large = asyncio.create_task(admit(admission, "large", 1000))
    first.may_sleep.set()
    await asyncio.wait_for(second.asked.wait(), 5)  # the first one sleeps: 500 MB are free, and meant for the large one
    with pytest.raises(NoCapacity):
        await admit(admission, "small", 300, 0.01)
    second.may_sleep.set()
    await asyncio.wait_for(large, 5)


async def test_a_newcomer_that_gives_up_leaves_the_room_to_others() -> None:
    sleeper, busy = Sleeper("sleeper", 1.0), Sleeper("busy")
    admission = house(1000, sleeper, busy)
    await admit(admission, "sleeper", 500)
    await admit(admission, "busy", 500)
    sleeper.may_sleep.set()
    with pytest.raises(NoCapacity):
        await admit(admission, "large", 1000, 0.05)
    async with asyncio.timeout(5):
        await admit(admission, "small", 500)
