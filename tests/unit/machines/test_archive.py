"""Which points are packed, and that nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from everforge.store.packs.pack import folder_of, locked
from everforge.store.packs.packer import Packer, PackerProcess
from everforge.store.packs.packing import Job
from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SnapshotId
from kit.house import House, NewMachine, quick


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House(packed_bytes=1)
    await house.start()
    yield house
    await house.close()


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """What is packed is packed behind the answer."""
    async with asyncio.timeout(20):
        while not await true():
            await asyncio.sleep(0.01)


async def until_packed(house: House, name: str, count: int) -> list[SnapshotId]:
    """All points of a machine but its head; there are at least so many of them."""

    async def all_packed() -> bool:
        _, others = await points(house, name)
        return len(others) >= count and packed(house) == set(others)

    await until(all_packed)
    return (await points(house, name))[1]


def packed(house: House) -> set[str]:
    return {p.name for p in house.folder.iterdir() if p.name.startswith("p") and not (p / "pages.img").exists()}


def template(house: House) -> str:
    return house.machines.forge.templates.id("fake-image", house.settings.disk_mb)


async def points(house: House, name: str) -> tuple[SnapshotId | None, list[SnapshotId]]:
    """The head, and the other points that are the machine's own."""
    head = (await house.machines.get(name)).record.head
    return head, [p.snapshot for p in await house.machines.points(name) if p.reason != "template" and p.snapshot != head]


async def test_points_that_are_not_the_head_are_packed_and_can_all_be_gone_back_to(house: House) -> None:
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    for i in range(6):
        await house.machines.run(name, f"x = {i}")
    await until_packed(house, name, 5)
    for i in range(6):
        await house.machines.rollback(name, instruction=i)
        assert (await house.machines.run(name, "x")).value == str(i)
    await until_packed(house, name, 12)


async def test_packed_points_are_dropped_as_others_are(house: House) -> None:
    house.settings = quick(points_max=4)
    await house.restart()
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    for i in range(10):
        await house.machines.run(name, f"x = {i}")
    pack = f".pack-{(await house.machines.get(name)).record.id}"

    async def only_the_last_are_there() -> bool:
        head, others = await points(house, name)
        return len(others) == 4 and packed(house) == set(others) and house.folders() == {str(head), template(house), pack, *others}

    await until(only_the_last_are_there)


async def test_the_limit_by_bytes_counts_what_packed_points_take(house: House) -> None:
    house.settings = quick(points_bytes_max=1_500_000)
    await house.restart()
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    await house.machines.run(name, "big = ''.join(map(str, range(80_000)))")  # 380 KB: four whole ones are over the limit
    for i in range(8):
        await house.machines.run(name, f"x = {i}")
        await until_packed(house, name, i + 1)
    assert {p.instruction for p in await house.machines.points(name)} >= set(range(9))
    for i in range(20):
        await house.machines.run(name, f"big = ''.join(map(str, range({i}, 80_000)))")  # everything moves: nothing to share
    assert len(await house.machines.points(name)) < 20


async def test_what_forks_begin_with_is_packed_when_they_have_all_gone_on(house: House) -> None:
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "x = 1")
    forks = [view.record.name for view in await house.machines.fork(name, count=2)]
    shared = (await house.machines.get(name)).record.head
    for each in (name, forks[0]):
        for i in (2, 3):
            await house.machines.run(each, f"x = {i}")
            await house.machines.snapshot(each)

    async def others_packed() -> bool:
        own = [s for each in (name, forks[0]) for s in (await points(house, each))[1]]
        return packed(house) == set(own) - {shared}

    await until(others_packed)
    assert shared not in packed(house)
    await house.machines.run(forks[1], "x = 4")
    await house.machines.snapshot(forks[1])

    async def shared_packed() -> bool:
        return shared in packed(house)

    await until(shared_packed)
    await house.machines.delete(name)
    await house.machines.rollback(forks[1], snapshot=shared)
    assert (await house.machines.run(forks[1], "x")).value == "1"


async def test_a_deleted_machine_leaves_nothing(house: House) -> None:
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    for i in range(4):
        await house.machines.run(name, f"x = {i}")
    await until_packed(house, name, 3)
    await house.machines.rollback(name, instruction=1)
    await house.machines.delete(name)

    async def nothing() -> bool:
        return house.folders() == {template(house)}

    await until(nothing)


async def test_packed_points_outlive_a_killed_server(house: House) -> None:
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    for i in range(5):
        await house.machines.run(name, f"x = {i}")
    await until_packed(house, name, 4)
    await house.machines.rollback(name, instruction=0)
    await house.restart()  # in the middle of packing, as likely as not
    for i in (4, 0, 3, 1, 2):
        await house.machines.rollback(name, instruction=i)
        assert (await house.machines.run(name, "x")).value == str(i)


async def test_a_damaged_pack_is_said_so_and_the_machine_goes_on(house: House) -> None:
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    for i in range(4):
        await house.machines.run(name, f"x = {i}")
    others = await until_packed(house, name, 3)
    (pack,) = house.folder.glob(".pack-*")
    (pack / others[1]).write_bytes(b"not an index")
    with pytest.raises(SnapshotDamaged, match="index of its packed files"):
        await house.machines.rollback(name, snapshot=others[1])
    assert (await house.machines.run(name, "x")).value == "3"
    await house.machines.rollback(name, snapshot=others[2])
    assert (await house.machines.run(name, "x")).value == "2"


# --- nobody waits for it -----------------------------------------------------------------------------------------------------------------


class Endless:
    """A packer that never comes to its end, and has its machine's pack locked meanwhile, as the real one has."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def do(self, job: Job) -> bool:
        folder = folder_of(Path(job.root), job.machine)
        assert folder is not None
        if job.snapshot is None:
            return True
        folder.mkdir(exist_ok=True)
        with locked(folder):
            self.begun.set()
            await asyncio.Event().wait()
        return False

    async def close(self) -> None:
        pass


USERS_WAIT: dict[str, Callable[[House, str], Awaitable[object]]] = {
    "deletes the machine": lambda house, name: house.machines.delete(name),
    "goes back to the point": lambda house, name: house.machines.rollback(name, snapshot="first"),
    "goes back to another": lambda house, name: house.machines.rollback(name, snapshot="second"),
    "forgets the point": lambda house, name: house.machines.forget(name, "first"),
    "forgets another": lambda house, name: house.machines.forget(name, "second"),
    "sleeps and wakes": lambda house, name: _sleep_and_wake(house, name),
}


async def _sleep_and_wake(house: House, name: str) -> None:
    await house.machines.hibernate(name)
    await house.machines.wake(name)


@pytest.mark.parametrize("what", USERS_WAIT)
async def test_a_user_does_not_wait_for_a_packing_who(what: str) -> None:
    packer = Endless()
    house = House(packed_bytes=1, packer=lambda: packer)
    await house.start()
    try:
        name = await with_three_points(house)
        await packer.begun.wait()
        async with asyncio.timeout(5):
            await USERS_WAIT[what](house, name)
        if what != "deletes the machine":
            assert (await house.machines.run(name, "x")).end == "value"
    finally:
        await house.close()


async def with_three_points(house: House) -> str:
    name = (await house.machines.create(NewMachine())).record.name
    for label in ("first", "second", "third"):
        await house.machines.run(name, f"x = {label!r}")
        await house.machines.snapshot(name, label)
    return name


async def test_what_an_earlier_server_left_whole_is_packed_though_its_machine_sleeps_on() -> None:
    packers: list[Callable[[], Packer]] = [Endless]
    house = House(packed_bytes=1, packer=lambda: packers[-1]())
    await house.start()
    try:
        name = await with_three_points(house)
        await house.machines.hibernate(name)
        assert packed(house) == set()
        packers.append(PackerProcess)
        await house.restart()
        await until_packed(house, name, 3)
        assert (await house.machines.get(name)).state == "asleep"
    finally:
        await house.close()
