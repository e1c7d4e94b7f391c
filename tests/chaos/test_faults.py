"""Every call of a server to its engine, its store and its snapshots fails once, with each error that it may really fail with: the whole of it on the fake engine.

Afterwards the machine is in a state that the tables allow, everything acknowledged is there once and in order, nothing is left behind, and the same
operation works when it is tried again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from everforge.machines import dossier, forge
from everforge.store.base import MachineQuery
from everforge.wire.errors import EverforgeError, MachineNotFound, NameTaken, SnapshotNotFound, Uncertain
from everforge.wire.events import Accepted, Ended, Lost
from everforge.wire.ids import OWNER
from kit.faults import FULL, RAISED, WRITES, Fault, Faults
from kit.house import House
from kit.walks import NAME, WALKS, Journal, NotDone, check_after, house_for, prepare

PATIENCE_SECONDS = 20.0
ROOM_AGAIN_SECONDS = 0.03
FOR_THE_NEXT_START = {"snapshots.delete", "store.snapshot_in_use"}  # what could not be removed is swept away then, and what nobody knows of
WRITING = [walk for walk in WALKS if walk != "pack"]  # which calls nothing that would have to be written
DONE_ALL_THE_SAME = {
    "sandbox.save": "SaveFailed",
    "snapshots.finish": "SaveFailed",
    "sandbox.destroy": "SandboxLost",
    "engine.restore": "WakeFailed",
}


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dossier, "FULL_DISK_PAUSE_SECONDS", 0.005)
    monkeypatch.setattr(forge, "REOPEN_PAUSES_SECONDS", (0.001, 0.01, 0.1, 1.0))


async def heard_in(walk: str) -> Counter[str]:
    """What an undisturbed run calls, and how often."""
    faults = Faults(of_archive=walk == "pack")
    house = house_for(walk, faults)
    await house.start()
    journal = Journal()
    await prepare(house.machines, journal)
    faults.forget()
    await WALKS[walk](house.machines, journal)
    heard = Counter(faults.heard)
    await house.close()
    return heard


def faults_of(heard: Counter[str]) -> Iterator[Fault]:
    for what, count in heard.items():
        for nth in range(1, count + 1):
            for error in RAISED.get(what, ()):
                yield Fault(what, nth, error)


async def walk_through(house: House, faults: Faults, walk: str, fault: Fault) -> Journal:
    journal = Journal()
    await prepare(house.machines, journal)
    faults.plan(fault)
    if fault.lasting:  # from when it strikes, however long it takes until then
        faults.on_first = lambda: asyncio.get_running_loop().call_later(ROOM_AGAIN_SECONDS, faults.clear)
    elif walk == "pack":  # what fails there is done after the machine's next save, and there is none
        faults.on_first = lambda: asyncio.get_running_loop().call_later(ROOM_AGAIN_SECONDS, pack_again, house)
    why = "done"
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await WALKS[walk](house.machines, journal)
    except EverforgeError as e:
        why = e.message
    except NotDone as e:
        why = e.ended.error
    assert why, "an error that says nothing"
    faults.clear()
    return journal


def pack_again(house: House) -> None:
    if keeper := house.machines.forge.kept(OWNER, NAME):
        house.machines.forge.archive.consider(keeper.id)


async def mend(house: House) -> None:
    """A snapshot that could not be read breaks its machine: then its points are offered, and the newest one is as good as it was."""
    for view in await house.machines.list(MachineQuery()):
        if view.state == "broken":
            assert "Points kept: " in (view.record.error or ""), view.record.error
            if view.record.name == NAME:
                await house.machines.rollback(NAME, snapshot=view.record.head)
            else:
                await house.machines.delete(view.record.name)


async def try_again(house: House, walk: str, journal: Journal) -> None:
    """What was done in spite of the error is there already, and says so. One that asks to be tried again is."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await WALKS[walk](house.machines, journal)
            except (NameTaken, SnapshotNotFound):
                return None
            except MachineNotFound:
                assert walk in ("delete", "delete on a full disk")
                return None
            except EverforgeError as e:
                if e.retry != "now":
                    raise
                await asyncio.sleep(0.001)


async def check_tapes(house: House, walk: str) -> None:
    for view in await house.machines.list(MachineQuery()):
        events = [e async for e in house.machines.read(view.record.name)]
        accepted = [e.instruction for e in events if isinstance(e, Accepted)]
        ended = [e.instruction for e in events if isinstance(e, Ended)]
        assert sorted(set(accepted)) == accepted
        assert sorted(ended) == accepted, "each ends once"
        assert walk.endswith("on a full disk") or not [e for e in events if isinstance(e, Lost)], "something was lost"


async def live_through(walk: str, fault: Fault, *, restart: bool = False) -> bool:
    """False when nothing came to fail."""
    faults = Faults(of_archive=walk == "pack")
    house = house_for(walk, faults)
    await house.start()
    try:
        journal = await walk_through(house, faults, walk, fault)
        if restart:
            await house.restart()
        await mend(house)
        await try_again(house, walk, journal)
        await check_after(house.machines, journal)
        await check_tapes(house, walk)
        if fault.what in FOR_THE_NEXT_START or (fault.after and fault.what in DONE_ALL_THE_SAME):
            await house.restart()
        await house.check_nothing_leaked()
        return faults.struck > 0
    finally:
        await house.close()


async def live_through_all(walk: str, faults: list[Fault], *, restart: bool = False) -> None:
    assert faults
    struck = 0
    for fault in faults:
        try:
            struck += await live_through(walk, fault, restart=restart)
        except BaseException as e:
            raise AssertionError(f"{fault} in {walk}: {e!r}") from e
    # Points are packed as often and as soon as there is time for it; everything else is done the same way every time.
    assert struck >= (0.6 if walk == "pack" else 1.0) * len(faults)


@pytest.mark.parametrize("walk", WALKS)
async def test_each_call_that_fails_once_costs_an_error_and_nothing_else_in(walk: str) -> None:
    await live_through_all(walk, list(faults_of(await heard_in(walk))))


@pytest.mark.parametrize("walk", [walk for walk in WRITING if walk != "exec"])
async def test_what_was_done_though_an_error_was_the_answer_is_not_done_twice_and_not_left_behind_in(walk: str) -> None:
    """As when a warden is killed between its work and its answer."""
    heard = await heard_in(walk)
    faults = [Fault(what, nth, error, after=True) for what, error in DONE_ALL_THE_SAME.items() for nth in range(1, heard[what] + 1)]
    await live_through_all(walk, faults)


@pytest.mark.parametrize("walk", WRITING)
async def test_a_disk_that_is_full_from_any_write_on_costs_nothing_once_there_is_room_in(walk: str) -> None:
    heard = await heard_in(walk)
    await live_through_all(walk, [Fault(what, nth, FULL, lasting=True) for what in WRITES for nth in range(1, heard[what] + 1)])


@pytest.mark.parametrize("walk", WRITING)
async def test_a_write_that_was_done_and_could_not_be_synced_is_neither_lost_nor_done_twice_in(walk: str) -> None:
    """The disk takes it, and does not say so: from then on the store promises nothing, until the next start."""
    heard = await heard_in(walk)
    writes = [what for what in WRITES if what.startswith("store.")]
    faults = [Fault(what, nth, Uncertain.__name__, after=True, lasting=True) for what in writes for nth in range(1, heard[what] + 1)]
    await live_through_all(walk, faults, restart=True)
