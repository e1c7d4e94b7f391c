from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from everforge.machines import expiry
from everforge.wire.errors import DiskFull, InvalidInput, MachineNotFound
from everforge.wire.ids import MachineId
from kit.house import House, NewMachine

FAR = 10_000.0


class Clock:
    """The computer's clock, as it is set by somebody."""

    def __init__(self, house: House) -> None:
        self.ahead = 0.0
        self._house = house
        self.attach()

    def attach(self) -> None:
        self._house.machines.forge.expiry._clock = lambda: time.time() + self.ahead  # pyright: ignore[reportPrivateUsage]

    def set_ahead(self, seconds: float) -> None:
        self.ahead = seconds


async def gone(house: House, id: MachineId) -> None:
    async with asyncio.timeout(20):
        while (record := await house.store.machine(id)) is not None and record.deleted_at is None:
            await asyncio.sleep(0.01)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(expiry, "RETRY_SECONDS", 0.02)


async def test_a_machine_is_deleted_when_its_time_has_come(house: House) -> None:
    kept = await house.machines.create(NewMachine(expires_at=time.time() + FAR))
    made = await house.machines.create(NewMachine(expires_at=time.time() + 0.1))
    await gone(house, made.record.id)
    with pytest.raises(MachineNotFound):
        await house.machines.get(made.record.name)
    assert (await house.machines.get(kept.record.name)).record.expires_at == kept.record.expires_at
    await house.check_nothing_leaked()


async def test_the_time_can_be_set_moved_and_cleared(house: House, quick_looks: None) -> None:
    clock = Clock(house)
    names = [(await house.machines.create()).record.name for _ in range(3)]
    for name in names:
        await house.machines.update(name, expires_at=time.time() + FAR)
    await house.machines.update(names[0], expires_at=None)
    await house.machines.update(names[1], expires_at=time.time() + 3 * FAR)
    tagged = await house.machines.update(names[2], tags={"k": "v"})
    assert tagged.record.expires_at is not None
    clock.set_ahead(2 * FAR)
    await gone(house, tagged.record.id)
    assert (await house.machines.get(names[0])).record.expires_at is None
    await house.machines.get(names[1])


async def test_what_expired_while_no_server_ran_goes_at_the_next_start(house: House, quick_looks: None) -> None:
    made = await house.machines.create(NewMachine(expires_at=time.time() + FAR))
    await house.machines.run(made.record.name, "x = 1")
    await house.machines.hibernate(made.record.name)
    clock = Clock(house)
    clock.set_ahead(2 * FAR)
    await house.kill()
    assert (await house.store.machine(made.record.id)) is not None
    await house.start()
    clock.attach()
    await gone(house, made.record.id)
    await house.check_nothing_leaked()


async def test_one_that_cannot_be_deleted_is_tried_again_and_keeps_no_other_from_it(house: House, quick_looks: None) -> None:
    clock = Clock(house)
    made = [await house.machines.create(NewMachine(expires_at=time.time() + FAR + n)) for n in range(2)]
    delete = house.machines.forge.expiry._delete  # pyright: ignore[reportPrivateUsage]
    full = True

    async def fail(record: Any) -> None:
        if full and record.id == made[0].record.id:
            raise DiskFull("the disk is full")
        await delete(record)

    house.machines.forge.expiry._delete = fail  # pyright: ignore[reportPrivateUsage]
    clock.set_ahead(2 * FAR)
    await gone(house, made[1].record.id)
    await house.machines.get(made[0].record.name)
    full = False
    await gone(house, made[0].record.id)


async def test_a_fork_does_not_expire_with_its_source(house: House) -> None:
    source = await house.machines.create(NewMachine(expires_at=time.time() + FAR))
    [fork] = await house.machines.fork(source.record.name)
    assert fork.record.expires_at is None


@pytest.mark.parametrize("when", [0.0, -1.0, float("nan"), float("inf"), 1e300, 10**400, "2030-01-01", True])
async def test_a_time_that_is_none_or_past_is_refused(house: House, when: Any) -> None:
    name = (await house.machines.create()).record.name
    for call in (house.machines.create(NewMachine(expires_at=when)), house.machines.update(name, expires_at=when)):
        with pytest.raises(InvalidInput, match="expires_at"):
            await call
