"""The server is ended before and after every step of what happens to an instruction that waits for its client's program."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.errors import EverforgeError, WrongState
from everforge.wire.events import Answered, Called, Ended
from kit.house import House, Killed

CODE = "runs = globals().get('runs', 0) + 1\nx = ask()\n(runs, x)"
ENDS = {
    "sleep": {("value", "(1, 'told')")},
    "awake": {("value", "(1, 'told')")},
    "fork": {("value", "(1, 'told')")},
    "interrupt": {("value", "(1, 'told')"), ("interrupted", None)},
    "interrupt asleep": {("value", "(1, 'told')"), ("interrupted", None)},
    "rollback": {("value", "(1, 'told')"), ("cancelled", None)},
}


async def walk(machines: Machines, what: str) -> None:
    await machines.snapshot("m", "start")
    await machines.exec("m", CODE, functions=["ask"])
    async for event in machines.read("m", follow=True):
        if isinstance(event, Called):
            break
    if what in ("sleep", "interrupt asleep"):
        await machines.hibernate("m")
    if what == "fork":
        await machines.fork("m", names=["copy"])
        assert (await machines.run("copy", "runs")).value == "1"
    elif what == "rollback":
        await machines.rollback("m", snapshot="start")
    elif what.startswith("interrupt"):
        await machines.interrupt("m")
        await machines.result("m", 0)
        await machines.run("m", "runs")
    await finish(machines)


async def finish(machines: Machines) -> None:
    """As a client that comes back: whatever still waits is answered, and everything has one end."""
    open_calls: set[int] = set()
    if not await machines.instructions("m"):
        return
    async for event in machines.read("m", follow=True):
        if isinstance(event, Called):
            open_calls.add(event.call)
            with contextlib.suppress(WrongState):
                await machines.answer("m", 0, event.call, value="told")
        elif isinstance(event, Ended) and event.instruction == 0:
            return


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


async def prepared(kill_at: tuple[str, int] | None = None) -> House:
    house = House()
    await house.start(kill_at)
    await house.machines.create(NewMachine(name="m"))
    await house.machines.wake("m")
    return house


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
