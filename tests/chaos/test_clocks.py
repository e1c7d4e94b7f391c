"""The wall clock jumps, by hours and by years, forwards and backwards: idle times, waits, keys, tokens and the order of things do not go by it.

What does go by it, because its owner gave a time of day, is expiry; and a machine that wakes has the time of its host. The system's clock is not set:
every reader in this process is given another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.accounts.service import Accounts
from everforge.machines import expiry
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.store.base import MachineQuery
from everforge.store.memory import MemoryStore
from everforge.store.sql.store import SqlStore
from everforge.wire.errors import MachineNotFound, Unauthenticated
from everforge.wire.events import Accepted
from kit.house import QUICK, House

HOUR, DAY, YEAR = 3600.0, 24 * 3600.0, 365 * 24 * 3600.0
CLOCKS_DIFFER_SECONDS = 0.3  # a sandbox measures how fast its own clock goes
JUMPS = [-YEAR, -HOUR, HOUR, 2 * DAY, 10 * YEAR]


class WallClock:
    """`time.time` and `time.time_ns` as they are, and so much off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.off_seconds = 0.0
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + self.off_seconds)
        monkeypatch.setattr(time, "time_ns", lambda: int((real() + self.off_seconds) * 1e9))

    def jump(self, seconds: float) -> None:
        self.off_seconds += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


@pytest.fixture
async def sql_house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(settings=replace(QUICK, points_max=5), store=await SqlStore.open(tmp_path / "everforge.db"))
    await house.start()
    yield house
    await house.close()
    await house.store.close()


async def seen_in(machines: Machines, name: str) -> str | None:
    return (await machines.run(name, "seen")).value


@pytest.mark.parametrize("seconds", JUMPS)
async def test_a_jump_between_any_two_operations_loses_nothing_and_changes_no_order(sql_house: House, clock: WallClock, seconds: float) -> None:
    machines = sql_house.machines
    await machines.create(NewMachine(name="m"))
    await machines.run("m", "seen = [0]")
    acts = [
        lambda: machines.run("m", "seen.append(len(seen))"),
        lambda: machines.hibernate("m"),
        lambda: machines.snapshot("m", "named"),
        lambda: machines.run("m", "seen.append(len(seen))"),
        lambda: machines.fork("m", names=["fork"]),
        lambda: machines.rollback("m", snapshot="named"),
        lambda: machines.run("m", "seen.append(len(seen))"),
    ]
    for act in acts:
        clock.jump(seconds)
        await act()
    assert await seen_in(machines, "m") == "[0, 1, 2]"
    assert await seen_in(machines, "fork") == "[0, 1, 2]"
    machines = await sql_house.restart()
    assert await seen_in(machines, "m") == "[0, 1, 2]"
    events = [e async for e in machines.read("m")]
    assert [e.position for e in events] == sorted({e.position for e in events})
    instructions = [e.instruction for e in events if isinstance(e, Accepted)]
    assert instructions == sorted(set(instructions))
    assert [p.name for p in await machines.points("m") if p.name] == ["named"]
    assert {v.record.name for v in await machines.list(MachineQuery())} == {"m", "fork"}
    await sql_house.check_nothing_leaked()


@pytest.mark.parametrize("seconds", JUMPS)
async def test_a_machine_sleeps_when_it_was_idle_for_long_enough_whatever_the_clock_says(house: House, clock: WallClock, seconds: float) -> None:
    await house.machines.create(NewMachine(name="short", idle_seconds=0.05))
    await house.machines.create(NewMachine(name="long", idle_seconds=30.0))
    await house.machines.run("long", "1")
    clock.jump(seconds)
    await house.until("short", "asleep")
    assert (await house.machines.get("long")).state == "ready", "it fell asleep because the clock was set"


@pytest.mark.parametrize("seconds", JUMPS)
async def test_an_instruction_has_its_time_whatever_the_clock_says(house: House, clock: WallClock, seconds: float) -> None:
    await house.machines.create(NewMachine(name="m"))
    number, _ = await house.machines.exec("m", "sleep(0.1)", timeout_seconds=60)
    hanging, _ = await house.machines.exec("m", "hang()", timeout_seconds=0.1)
    clock.jump(seconds)
    assert (await house.machines.result("m", number)).end == "value"
    assert (await house.machines.result("m", hanging)).end == "timed_out"


@pytest.mark.parametrize("seconds", JUMPS)
async def test_a_key_that_comes_again_after_a_jump_makes_nothing_twice(sql_house: House, clock: WallClock, seconds: float) -> None:
    machines = sql_house.machines
    first = await machines.create(NewMachine(), key="create")
    number, _ = await machines.exec(first.record.name, "seen = [0]", key="exec")
    (fork,) = await machines.fork(first.record.name, key="fork")
    clock.jump(seconds)
    await machines.create(NewMachine(name="another"), key="another")  # this is when old keys are forgotten
    assert (await machines.create(NewMachine(), key="create")).record.id == first.record.id
    assert (await machines.exec(first.record.name, "seen = [0]", key="exec"))[0] == number
    assert [v.record.id for v in await machines.fork(first.record.name, key="fork")] == [fork.record.id]
    assert len(await machines.list(MachineQuery())) == 3


async def test_a_machine_expires_by_the_clock_and_not_before(house: House, clock: WallClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "LOOK_SECONDS", 0.01)  # how soon a clock that was set is noticed
    monkeypatch.setattr(house.machines.forge.expiry, "_clock", lambda: time.time())
    await house.machines.create(NewMachine(name="m", expires_at=time.time() + HOUR))
    clock.jump(-YEAR)
    await asyncio.sleep(0.05)
    assert (await house.machines.get("m")).record.name == "m"
    clock.jump(YEAR + 2 * HOUR)
    async with asyncio.timeout(5):
        with pytest.raises(MachineNotFound):
            while await house.machines.get("m"):
                await asyncio.sleep(0.005)
    await house.check_nothing_leaked()


async def test_a_point_does_not_grow_old_because_the_clock_was_set(house: House, clock: WallClock) -> None:
    await house.machines.create(NewMachine(name="m"))
    await house.machines.run("m", "seen = [0]")
    point = await house.machines.snapshot("m")
    for seconds in JUMPS:
        for there_and_back in (seconds, -seconds):
            clock.jump(there_and_back)
            await house.machines.run("m", "seen.append(1)")
            await house.machines.snapshot("m")
    await house.machines.rollback("m", snapshot=point.snapshot)
    assert await seen_in(house.machines, "m") == "[0]"


async def test_a_token_is_good_until_its_time_by_the_clock_and_one_without_a_time_whatever_it_says(tmp_path: Path, clock: WallClock) -> None:
    accounts = Accounts(MemoryStore().accounts, tmp_path, clock=lambda: time.time())  # as it is when it is asked
    await accounts.start()
    owner = await accounts.identify((tmp_path / "owner.token").read_text().strip())
    lasting, brief = await accounts.new_token(owner), await accounts.new_token(owner, expires_at=time.time() + HOUR)
    for seconds, is_good in ((-YEAR, True), (YEAR + 2 * HOUR, False), (10 * YEAR, False)):
        clock.jump(seconds)
        assert (await accounts.identify(lasting.token)).token_id == lasting.record.id
        if is_good:
            assert (await accounts.identify(brief.token)).token_id == brief.record.id
        else:
            with pytest.raises(Unauthenticated):
                await accounts.identify(brief.token)
    clock.jump(-20 * YEAR)
    assert (await accounts.identify(lasting.token)).token_id == lasting.record.id
    await accounts.close()


STAMPS = """
import threading, time
stamps = [time.time()]
def stamp():
    while True:
        stamps.append(time.time())
        time.sleep(0.001)
threading.Thread(target=stamp, daemon=True).start()
"""
GAP = "i = max(range(1, len(stamps)), key=lambda i: stamps[i] - stamps[i - 1]); stamps[i - 1], stamps[i], stamps == sorted(stamps)"


@pytest.mark.gvisor
async def test_the_first_thing_a_woken_machine_sees_is_the_time_of_its_host(machines: Machines) -> None:
    """Its thread reads the clock all the time: the time that it was asleep is missing, and no time from before comes after."""
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, STAMPS)
    await machines.hibernate(name)
    asleep_at = time.time()
    await asyncio.sleep(1.0)  # not for something to happen: a clock that stood still must show
    woken_at = time.time()
    before, after, in_order = eval((await machines.run(name, GAP)).value or "")
    assert before <= asleep_at + CLOCKS_DIFFER_SECONDS
    assert woken_at - CLOCKS_DIFFER_SECONDS <= after <= time.time() + CLOCKS_DIFFER_SECONDS
    assert in_order, "time went backwards"
