"""Every call of a server's start fails once, with each error that it may really fail with: a sandbox that lives is never taken for lost because of that.

What concerns one machine, or is tidying, costs not even an error; the rest makes the start fail, and the next one finds everything.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from everforge.machines import dossier, expiry, forge
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Ended, Lost
from kit.faults import FAILED, RAISED, Fault, Faults
from kit.house import House
from kit.walks import NAME, Journal, prepare

SCENES = ("idle", "busy", "asleep")
OF_THE_WHOLE = {"engine.survivors", "store.machines", "store.machines_with_unended"}  # without these nobody can start


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dossier, "FULL_DISK_PAUSE_SECONDS", 0.005)
    monkeypatch.setattr(forge, "REOPEN_PAUSES_SECONDS", (0.001, 0.01, 0.1, 1.0))
    monkeypatch.setattr(expiry, "RETRY_SECONDS", 0.005)


async def killed(scene: str, faults: Faults) -> House:
    """A computer whose server is gone; its machine was at something."""
    house = House(faults=faults)
    await house.start()
    await prepare(house.machines, Journal())
    if scene == "busy":
        await house.machines.exec(NAME, "sleep(0.05)")
        await house.until(NAME, "busy")
    if scene == "asleep":
        await house.machines.hibernate(NAME)
    await house.kill()
    faults.forget()
    return house


async def heard_in(scene: str) -> Counter[str]:
    faults = Faults()
    house = await killed(scene, faults)
    await house.start()
    heard = Counter(faults.heard)
    await house.close()
    return heard


def faults_of(heard: Counter[str]) -> Iterator[Fault]:
    for what, count in heard.items():
        for nth in range(1, count + 1):
            for error in RAISED.get(what, ()):
                yield Fault(what, nth, error)


async def start(house: House, faults: Faults, fault: Fault) -> None:
    faults.plan(fault)
    try:
        await house.start()
    except EverforgeError:
        if fault.what not in OF_THE_WHOLE:
            raise
        faults.clear()
        await house.restart()


async def until_struck(faults: Faults) -> None:
    """What looks for machines that have expired begins with the start, and goes on behind it."""
    async with asyncio.timeout(10):
        while not faults.struck:
            await asyncio.sleep(0.001)


async def check(house: House) -> None:
    assert (await house.machines.run(NAME, "seen")).value == "[0, 1]"
    events = [e async for e in house.machines.read(NAME)]
    assert not [e for e in events if isinstance(e, Lost)], "something was lost"
    assert {e.end for e in events if isinstance(e, Ended)} == {"value"}
    await house.check_nothing_leaked()


@pytest.mark.parametrize("scene", SCENES)
async def test_each_call_of_a_start_that_fails_once_costs_an_error_at_the_most_of_a_machine_that_was(scene: str) -> None:
    planned = list(faults_of(await heard_in(scene)))
    assert len(planned) >= 4, planned
    for fault in planned:
        faults = Faults()
        house = await killed(scene, faults)
        try:
            await start(house, faults, fault)
            await until_struck(faults)
            faults.clear()
            await check(house)
        except BaseException as e:
            raise AssertionError(f"{fault}: {e!r}") from e
        finally:
            await house.close()


async def test_a_machine_whose_recovery_failed_is_opened_again_though_nobody_asks_for_it() -> None:
    """It needs its deadlines, its idle sleep and its place in admission."""
    faults = Faults()
    house = await killed("idle", faults)
    try:
        await start(house, faults, Fault("store.received", 1, FAILED))
        assert faults.struck
        await house.until_kept(NAME)
        await check(house)
    finally:
        await house.close()


@pytest.mark.parametrize("seed", range(6))
async def test_a_store_that_fails_again_and_again_for_a_while_takes_no_living_machine_with_it(seed: int) -> None:
    """Keepers fail, and are opened again, by calls that fail in their turn."""
    faults = Faults()
    house = House(faults=faults)
    await house.start()
    try:
        await prepare(house.machines, Journal())
        faults.ail("store.", 0.5, seed)
        for _ in range(4):
            try:
                await house.machines.run(NAME, "print(1)")
            except EverforgeError:
                continue
        faults.clear()
        await check(house)
    finally:
        await house.close()
