"""The server is ended before and after every step of every operation, on the fake engine: the whole table in seconds."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import pytest

from everforge.machines.lifecycle import Residence
from everforge.store.base import MachineQuery
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Accepted, Ended
from kit.house import House, Killed
from kit.packed import until_packed
from kit.walks import NAME, WALKS, Journal, check_after, house_for, is_part_of, prepare


async def steps_of(walk: str) -> list[tuple[str, int]]:
    """Every step that the operation goes through, heard from a run that nobody disturbs."""
    house = house_for(walk)
    await house.start()
    journal = Journal()
    await prepare(house.machines, journal)
    before = Counter(house.life.steps)
    await WALKS[walk](house.machines, journal)
    heard: list[tuple[str, int]] = []
    seen = Counter[str]()
    for step in house.life.steps:
        seen[step] += 1
        if seen[step] > before[step] and is_part_of(walk, step):
            heard.append((step, seen[step]))
    await house.close()
    return heard


async def killed_at(walk: str, step: tuple[str, int]) -> None:
    house = house_for(walk)
    await house.start(kill_at=step)
    journal = Journal()
    await prepare(house.machines, journal)
    walking = asyncio.ensure_future(WALKS[walk](house.machines, journal))
    dying = asyncio.ensure_future(house.life.dead.wait())
    async with asyncio.timeout(10):
        await asyncio.wait([walking, dying], return_when=asyncio.FIRST_COMPLETED)
    if not walking.done():
        await asyncio.sleep(0)
        walking.cancel()
    with contextlib.suppress(Killed, EverforgeError, asyncio.CancelledError):
        await walking
    dying.cancel()
    await house.kill()
    await house.start()
    await check_after(house.machines, journal)
    await check_tapes(house)
    await house.check_nothing_leaked()
    if walk == "pack":
        await until_packed(house.machines, NAME)
        await house.check_nothing_leaked()
        await house.machines.delete(NAME)
        await house.check_nothing_leaked()
    await house.close()


async def check_tapes(house: House) -> None:
    for view in await house.machines.list(MachineQuery()):
        assert Residence(view.record.residence) is not Residence.DELETED
        events = [e async for e in house.machines.read(view.record.name)]
        accepted = [e.instruction for e in events if isinstance(e, Accepted)]
        ended = [e.instruction for e in events if isinstance(e, Ended)]
        assert len(set(accepted)) == len(accepted)
        assert len(set(ended)) == len(ended)
        assert set(ended) <= set(accepted)


@pytest.mark.parametrize("walk", WALKS)
async def test_killed_at_every_step_of(walk: str) -> None:
    steps = await steps_of(walk)
    assert len(steps) >= 4, steps
    for step in steps:
        try:
            await killed_at(walk, step)
        except BaseException as e:
            raise AssertionError(f"killed at {step} of {walk}: {e!r}") from e
