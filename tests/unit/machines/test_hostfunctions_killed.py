"""The server is ended before and after every step of what happens to an instruction that waits for its client's program."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import pytest

from everforge.wire.errors import EverforgeError
from everforge.wire.events import Answered, Called, Ended
from kit.callwalks import ENDS, finish, prepared, walk
from kit.house import House, Killed


async def until_dead(house: House, what: str) -> None:
    walking = asyncio.ensure_future(walk(house.machines, what))
    dying = asyncio.ensure_future(house.life.dead.wait())
    async with asyncio.timeout(10):
        await asyncio.wait([walking, dying], return_when=asyncio.FIRST_COMPLETED)
    walking.cancel()
    dying.cancel()
    with contextlib.suppress(Killed, EverforgeError, asyncio.CancelledError):
        await walking
    await house.kill()


async def steps_of(what: str) -> list[tuple[str, int]]:
    house = await prepared()
    before = len(house.life.steps)
    await walk(house.machines, what)
    seen, heard = Counter[str](), list[tuple[str, int]]()
    for index, step in enumerate(house.life.steps):
        seen[step] += 1
        if index >= before:
            heard.append((step, seen[step]))
    await house.close()
    return heard


@pytest.mark.parametrize("what", ENDS)
async def test_killed_at_every_step_of(what: str) -> None:
    steps = await steps_of(what)
    assert len(steps) >= 8, steps
    for step in steps:
        house = await prepared(step)
        try:
            await until_dead(house, what)
            await house.start()
            await check(house, what)
        except BaseException as e:
            e.add_note(f"killed at {step}")
            raise
        finally:
            await house.close()


async def check(house: House, what: str) -> None:
    machines = house.machines
    async with asyncio.timeout(10):
        await finish(machines)
        tape = [event async for event in machines.read("m")]
        ends = [(e.end, e.value) for e in tape if isinstance(e, Ended) and e.instruction == 0]
        assert len(ends) <= 1
        assert set(ends) <= ENDS[what], tape
        answered = [e.call for e in tape if isinstance(e, Answered)]
        assert len(answered) == len(set(answered)) == len([e for e in tape if isinstance(e, Called)]) or ends[0][0] != "value"
        if ends:
            assert (await machines.run("m", "1 + 1")).value == "2"
        await house.check_nothing_leaked()
