"""Several callers at once, callers that go away, and faults in the middle of things."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from everforge.store.base import Change
from everforge.store.memory import MemoryStore
from everforge.store.sql.store import SqlStore
from everforge.wire.errors import DiskFull, EverforgeError, InvalidInput, MachineFailed, MachineNotFound, SaveFailed, Uncertain
from everforge.wire.events import Ended, Event
from kit.house import House, NewMachine, quick


@pytest.fixture
async def sql_house() -> AsyncIterator[House]:
    with tempfile.TemporaryDirectory(prefix="everforge-sql-") as folder:
        store = await SqlStore.open(Path(folder) / "db")
        house = House(store=store)
        await house.start()
        yield house
        await house.close()
        await store.close()


async def awake(house: House, **wanted: Any) -> str:
    name = (await house.machines.create(NewMachine(**wanted))).record.name
    await house.machines.run(name, "x = 1")
    return name


async def test_a_crowd_at_a_sleeping_machine_opens_it_once(sql_house: House) -> None:
    house = sql_house
    name = await awake(house)

    async def late(turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return (await house.machines.exec(name, "x"))[0]

    chance = random.Random(7)
    for _ in range(30):
        await house.machines.hibernate(name)
        crowd = [late(chance.randint(0, 60)) for _ in range(5)]
        numbers = await asyncio.gather(house.machines.interrupt(name), *crowd)
        assert len(set(numbers[1:])) == 5
        assert [(await house.machines.result(name, n)).value for n in numbers[1:]] == ["1"] * 5
        assert len(house.host.sandboxes) == 1


async def test_a_deleted_machine_stays_deleted_whoever_comes_meanwhile(sql_house: House) -> None:
    house = sql_house
    for _ in range(10):
        name = await awake(house, name="short-lived")
        asks = [house.machines.exec(name, "1") for _ in range(6)]
        answers = await asyncio.gather(house.machines.delete(name), *asks, return_exceptions=True)
        assert all(a is None or isinstance(a, tuple | Uncertain | MachineNotFound) for a in answers), answers
        with pytest.raises(MachineNotFound):
            await house.machines.get(name)
        assert not house.host.sandboxes


async def test_a_reader_sees_everything_in_order_while_durable_and_plain_writes_overtake_each_other(sql_house: House) -> None:
    house = sql_house
    store: Any = house.store
    sync = store._syncer._sync

    def slow() -> None:
        time.sleep(0.05)
        sync()

    store._syncer._sync = slow
    name = await awake(house, durability="each")
    seen: list[Any] = []

    async def follow() -> None:
        async for event in house.machines.read(name, follow=True):
            seen.append(event)

    following = asyncio.create_task(follow())
    for _ in range(3):
        first, _ = await house.machines.exec(name, "1")
        second, _ = await house.machines.exec(name, "2")
        await house.machines.result(name, first)
        await house.machines.result(name, second)
    whole = [e async for e in house.machines.read(name)]
    await asyncio.sleep(0.1)
    following.cancel()
    assert [e.position for e in seen] == [e.position for e in whole]


async def test_the_oldest_point_survives_the_rollback_to_it() -> None:
    house = House(quick(points_max=3))
    await house.start()
    name = await awake(house, history="each")
    for i in range(6):
        await house.machines.run(name, f"x = {i}")
    await house.machines.wake(name)  # behind the last save
    oldest = next(p for p in await house.machines.points(name) if p.reason == "each")
    await house.machines.rollback(name, snapshot=oldest.snapshot)
    assert (await house.machines.get(name)).state == "ready"
    await house.close()


@pytest.mark.parametrize("error", [MachineFailed("the warden failed"), EverforgeError("the database failed")])
async def test_a_save_that_fails_in_any_way_leaves_the_machine_awake(house: House, error: EverforgeError, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await awake(house)
    (sandbox,) = house.host.sandboxes.values()

    async def fail(folder: Path) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "save", fail)
        with pytest.raises(SaveFailed):
            await house.machines.hibernate(name)
        with pytest.raises(SaveFailed):
            await house.machines.snapshot(name)
    assert (await house.machines.run(name, "x")).value == "1"
    await house.machines.hibernate(name)
    assert (await house.machines.run(name, "x")).value == "1"
    await house.check_nothing_leaked()


async def test_output_that_cannot_be_recorded_fails_the_keeper_and_not_the_machine(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await awake(house)
    commit, failures = house.store.commit, iter([EverforgeError("the database failed")])

    async def fail_once(change: Any) -> Any:
        if any(not isinstance(e, Ended) and e.frame for e in change.events) and (error := next(failures, None)):
            raise error
        return await commit(change)

    monkeypatch.setattr(house.store, "commit", fail_once)
    with pytest.raises(Uncertain):
        await house.machines.run(name, "print('kept'); x += 1")
    assert (await house.machines.run(name, "x")).value == "2"
    assert (await house.machines.result(name, 1)).end == "value"


async def test_a_failed_keeper_is_replaced_although_nobody_asks(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await awake(house, idle_seconds=0.3)
    keeper = next(iter(house.machines.forge.keepers.all()))
    with pytest.raises(Uncertain):
        await keeper.operate("mistake", _mistake)
    async with asyncio.timeout(10):
        while (await house.machines.get(name)).state != "asleep" or house.host.sandboxes:
            await asyncio.sleep(0.01)


async def _mistake() -> None:
    raise RuntimeError("a mistake of ours")


async def test_deleting_a_machine_whose_keeper_failed_leaves_no_sandbox(house: House) -> None:
    name = await awake(house)
    keeper = next(iter(house.machines.forge.keepers.all()))
    with pytest.raises(Uncertain):
        await keeper.operate("mistake", _mistake)
    await house.machines.delete(name)
    assert not house.host.sandboxes


async def test_a_delete_whose_caller_goes_away_is_finished_all_the_same(house: House) -> None:
    name = await awake(house)
    deleting = asyncio.create_task(house.machines.delete(name))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    deleting.cancel()
    async with asyncio.timeout(5):
        while house.host.sandboxes:
            await asyncio.sleep(0.005)
    with pytest.raises(MachineNotFound):
        await house.machines.get(name)


async def test_a_stop_ends_although_a_machine_breaks_during_its_grace(house: House) -> None:
    name = await awake(house)
    await house.machines.exec(name, "hang()")
    stopping = asyncio.create_task(house.machines.forge.stop())
    await asyncio.sleep(0.02)
    house.host.lose_everything()
    async with asyncio.timeout(10):
        await stopping


async def test_a_wake_refused_for_a_full_disk_gives_its_memory_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await awake(house)
    await house.machines.hibernate(name)
    commit = house.store.commit

    async def full(change: Any) -> Any:
        if change.set.get("residence") == "waking":
            raise DiskFull("the database's disk is full")
        return await commit(change)

    with monkeypatch.context() as patch:
        patch.setattr(house.store, "commit", full)
        with pytest.raises(DiskFull):
            await house.machines.wake(name)
    assert house.machines.forge.admission.taken_mb == 0
    assert (await house.machines.run(name, "x")).value == "1"


async def test_waiters_of_a_deleted_machine_hear_that_it_was_cancelled(house: House) -> None:
    name = await awake(house)
    running, _ = await house.machines.exec(name, "hang()")
    waiting = asyncio.create_task(house.machines.result(name, running))
    await asyncio.sleep(0.01)
    await house.machines.delete(name)
    assert (await waiting).end == "cancelled"


@pytest.mark.parametrize("ask", [{"instruction": "1"}, {"instruction": 1.5}, {"instruction": True}, {"instruction": -1}])
async def test_a_bad_point_to_go_back_to_is_refused(house: House, ask: dict[str, Any]) -> None:
    name = await awake(house)
    with pytest.raises(InvalidInput):
        await house.machines.rollback(name, **ask)
    assert (await house.machines.run(name, "x")).value == "1"


@pytest.mark.parametrize("names", ["abc", 5, [], ["a/b"]])
async def test_bad_names_for_forks_are_refused(house: House, names: Any) -> None:
    name = await awake(house)
    with pytest.raises(InvalidInput):
        await house.machines.fork(name, names=names)


async def test_what_waits_for_the_source_of_a_fork_ends_as_cancelled_in_the_fork(house: House) -> None:
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "x = 1")
    forking = asyncio.ensure_future(house.machines.fork(name, names=["copy"]))
    await asyncio.sleep(0)
    number, _ = await house.machines.exec(name, "x = 2")
    await forking
    assert (await house.machines.result(name, number)).end == "value"
    assert (await house.machines.result("copy", number)).end == "cancelled"
    assert (await house.machines.run("copy", "x")).value == "1"
    assert (await house.machines.run(name, "x")).value == "2"


async def test_what_a_fork_never_ran_ends_there_also_when_the_source_has_run_and_lost_it(house: House) -> None:
    """It waited where the snapshot was taken, ran, and was lost with the sandbox: the fork goes on from that snapshot."""
    name = (await house.machines.create(NewMachine())).record.name
    first, _ = await house.machines.exec(name, "x = 1; sleep(0.02)")
    saving = asyncio.ensure_future(house.machines.snapshot(name))
    await asyncio.sleep(0)
    number, _ = await house.machines.exec(name, "x = 2")
    await saving
    assert (await house.machines.result(name, number)).end == "value"
    house.host.lose_everything()
    await house.until(name, "asleep")
    await house.machines.fork(name, names=["copy"])
    assert (await house.machines.result("copy", first)).end == "value"
    assert (await house.machines.result("copy", number)).end == "cancelled"
    assert (await house.machines.run("copy", "x")).value == "1"


class HeldStore(MemoryStore):
    """Its commits are done when they are let go, whether anybody still waits for them or not: as in a writer's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.go.set()
        self.waits = asyncio.Event()

    async def commit(self, change: Change) -> Sequence[Event]:
        return await asyncio.shield(self._commit(change))

    async def _commit(self, change: Change) -> Sequence[Event]:
        self.waits.set()
        await self.go.wait()
        return await super().commit(change)


async def give_up_in_the_middle(store: HeldStore, asking: asyncio.Future[Any]) -> None:
    store.waits.clear()
    store.go.clear()
    await store.waits.wait()
    asking.cancel()
    store.go.set()
    await asyncio.wait([asking])


async def test_a_caller_who_gives_up_leaves_nothing_half_done() -> None:
    store = HeldStore()
    house = House(store=store)
    await house.start()
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "seen = []")
    await give_up_in_the_middle(store, asyncio.ensure_future(house.machines.exec(name, "seen.append('given up')", key="k")))
    await house.machines.run(name, "seen.append('later')")
    number, _ = await house.machines.exec(name, "seen.append('given up')", key="k")
    assert (number, (await house.machines.result(name, number)).end) == (1, "value")
    assert (await house.machines.run(name, "seen")).value == "['given up', 'later']"
    await give_up_in_the_middle(store, asyncio.ensure_future(house.machines.update(name, tags={"a": "b"})))
    assert (await house.machines.get(name)).record.tags == {"a": "b"}
    await house.close()


async def test_what_waits_for_a_machine_that_is_deleted_hears_that_it_was(house: House) -> None:
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.exec(name, "hang()")
    waiting = asyncio.ensure_future(house.machines.snapshot(name))
    await asyncio.sleep(0.01)
    await house.machines.delete(name)
    with pytest.raises(MachineNotFound, match="deleted"):
        await waiting
