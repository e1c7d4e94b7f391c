from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from typing import Any

import pytest

from everforge.store import manifests
from everforge.wire.errors import (
    DiskFull,
    InvalidInput,
    MachineBroken,
    NameTaken,
    PointNotKept,
    Refused,
    SaveFailed,
    SnapshotDamaged,
    SnapshotForeign,
    SnapshotNotFound,
)  # fmt: skip
from everforge.wire.events import Accepted, Ended
from kit.house import House, Killed, NewMachine, quick


async def new(house: House, **wanted: object) -> str:
    return (await house.machines.create(NewMachine(**wanted))).record.name  # pyright: ignore[reportArgumentType]


async def test_a_rollback_brings_back_the_state_and_can_be_undone(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 'good'")
    await house.machines.snapshot(name, "before")
    await house.machines.run(name, "x = 'mistake'")
    back = await house.machines.rollback(name, snapshot="before")
    assert (await house.machines.run(name, "x")).value == "'good'"
    await house.machines.rollback(name, snapshot=back.undo)
    assert (await house.machines.run(name, "x")).value == "'mistake'"


@pytest.mark.parametrize("setting", ["history", "durability"])
async def test_with_a_point_for_each_instruction_any_of_them_can_be_gone_back_to(house: House, setting: str) -> None:
    name = await new(house, **{setting: "each"})
    for i in range(30):
        await house.machines.run(name, f"x = {i}")
    for i in (0, 29, 7, 15):
        await house.machines.rollback(name, instruction=i)
        assert (await house.machines.run(name, "x")).value == str(i)


async def test_durability_each_loses_nothing_that_was_told(house: House) -> None:
    name = await new(house, durability="each")
    for i in range(5):
        await house.machines.run(name, f"x = {i}")
    await house.kill()
    house.host.lose_everything()
    await house.start()
    assert (await house.machines.run(name, "x")).value == "4"


async def test_a_point_that_was_not_kept_names_the_nearest(house: House) -> None:
    name = await new(house)
    for i in range(3):
        await house.machines.run(name, f"x = {i}")
    await house.machines.snapshot(name)
    with pytest.raises(PointNotKept, match="after instruction 2"):
        await house.machines.rollback(name, instruction=1)
    with pytest.raises(SnapshotNotFound):
        await house.machines.rollback(name, snapshot="nowhere")
    with pytest.raises(InvalidInput):
        await house.machines.rollback(name, snapshot="a", instruction=1)
    assert (await house.machines.run(name, "x")).value == "2"


async def test_a_rollback_whose_save_fails_is_refused_and_nothing_changes(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name, "a")
    await house.machines.run(name, "x = 2")
    house.host.failing_saves = 1
    with pytest.raises(Exception, match="told to fail"):
        await house.machines.rollback(name, snapshot="a")
    assert (await house.machines.run(name, "x")).value == "2"


async def spoiled(house: House) -> str:
    """A machine with a point, whose saves all fail from now on."""
    name = await new(house)
    await house.machines.run(name, "x = 'good'")
    await house.machines.snapshot(name, "before")
    await house.machines.run(name, "x = 'mistake'")
    house.host.failing_saves = 1000
    return name


async def test_a_machine_that_cannot_be_saved_goes_back_when_what_it_has_may_be_discarded(house: House) -> None:
    name = await spoiled(house)
    with pytest.raises(SaveFailed, match=f"told to fail.*everforge machine rollback {name} SNAPSHOT --discard.*`discard`") as refused:
        await house.machines.rollback(name, snapshot="before")
    assert type(refused.value) is SaveFailed
    assert (await house.machines.run(name, "x")).value == "'mistake'", "nothing was done"
    points = [p.snapshot for p in await house.machines.points(name)]
    back = await house.machines.rollback(name, snapshot="before", discard=True)
    assert (back.point.name, back.undo) == ("before", None)
    assert (await house.machines.run(name, "x")).value == "'good'"
    assert [p.snapshot for p in await house.machines.points(name)] == points
    assert (await house.machines.get(name)).record.error is None
    await house.check_nothing_leaked()


async def test_a_machine_that_cannot_be_saved_is_reset_when_what_it_has_may_be_discarded(house: House) -> None:
    name = await spoiled(house)
    with pytest.raises(SaveFailed, match=f"everforge machine reset {name} --discard"):
        await house.machines.reset(name)
    assert (await house.machines.run(name, "x")).value == "'mistake'", "nothing was done"
    assert await house.machines.reset(name, discard=True) is None
    assert "NameError" in ((await house.machines.run(name, "x")).error or "")
    house.host.failing_saves = 0
    await house.machines.rollback(name, snapshot="before")
    assert (await house.machines.run(name, "x")).value == "'good'"


async def test_what_is_not_to_be_kept_is_not_saved_though_it_could_be(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name, "one")
    await house.machines.run(name, "x = 2")
    points = len(await house.machines.points(name))
    assert (await house.machines.rollback(name, snapshot="one", discard=True)).undo is None
    assert len(await house.machines.points(name)) == points
    await house.machines.run(name, "x = 3")
    await house.machines.hibernate(name)
    undo = (await house.machines.rollback(name, snapshot="one", discard=True)).undo
    assert undo is not None, "what sleeps is a point already, and stays one"
    await house.machines.rollback(name, snapshot=undo)
    assert (await house.machines.run(name, "x")).value == "3"


async def test_what_is_not_to_be_kept_is_kept_when_there_is_nothing_to_go_back_to(house: House) -> None:
    name = await spoiled(house)
    with pytest.raises(SnapshotNotFound):
        await house.machines.rollback(name, snapshot="nowhere", discard=True)
    assert (await house.machines.run(name, "x")).value == "'mistake'"


async def test_a_full_disk_is_no_reason_to_throw_away_what_is_there(house: House) -> None:
    name = await spoiled(house)
    house.host.failing_saves, house.host.disk_full = 0, True
    with pytest.raises(DiskFull) as refused:
        await house.machines.rollback(name, snapshot="before")
    assert "discard" not in refused.value.message
    house.host.disk_full = False
    assert (await house.machines.run(name, "x")).value == "'mistake'"


async def test_what_waits_behind_a_rollback_is_cancelled(house: House) -> None:
    import asyncio

    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name, "a")
    slow, _ = await house.machines.exec(name, "sleep(0.05)")
    rollback = asyncio.create_task(house.machines.rollback(name, snapshot="a"))
    await asyncio.sleep(0.01)
    behind, _ = await house.machines.exec(name, "x = 3")
    await rollback
    assert (await house.machines.result(name, slow)).end == "value"
    assert (await house.machines.result(name, behind)).end == "cancelled"


async def test_a_reset_is_fresh_and_can_be_undone(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    undo = await house.machines.reset(name)
    assert "NameError" in ((await house.machines.run(name, "x")).error or "")
    await house.machines.rollback(name, snapshot=undo)
    assert (await house.machines.run(name, "x")).value == "1"


@pytest.mark.parametrize("asleep", [False, True])
async def test_forks_go_on_from_the_source_with_randomness_of_their_own(house: House, asleep: bool) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 7; random.seed(1)")
    if asleep:
        await house.machines.hibernate(name)
    forks = [v.record.name for v in await house.machines.fork(name, count=5)]
    values = [(await house.machines.run(n, "x, random.random()")).value for n in [name, *forks]]
    assert all(v is not None and v.startswith("(7, ") for v in values)
    assert len(set(values)) == 6
    assert (await house.machines.get(name)).state == "ready"
    for fork in forks:
        await house.machines.run(fork, "x = 0")
    assert (await house.machines.run(name, "x")).value == "7"


async def test_a_forks_tape_begins_as_its_sources(house: House) -> None:
    name = await new(house)
    for i in range(3):
        await house.machines.run(name, f"x = {i}")
    (fork,) = await house.machines.fork(name, names=["copy"])
    await house.machines.run(name, "x = 'source only'")
    await house.machines.run("copy", "x")
    codes = [e.code async for e in house.machines.read("copy") if isinstance(e, Accepted)]
    assert codes == ["x = 0", "x = 1", "x = 2", "x"]
    assert (await house.machines.result("copy", 1)).end == "value"
    await house.machines.delete(name)
    codes = [e.code async for e in house.machines.read("copy") if isinstance(e, Accepted)]
    assert codes == ["x = 0", "x = 1", "x = 2", "x"]
    ends = [e.instruction async for e in house.machines.read("copy") if isinstance(e, Ended)]
    assert ends == sorted(set(ends))
    assert fork.record.source_position is not None
    with pytest.raises(NameTaken):
        await house.machines.fork("copy", names=["copy"])


async def test_old_points_are_dropped_but_never_a_named_one() -> None:
    house = House(quick(points_max=3))
    await house.start()
    name = await new(house, history="each")
    await house.machines.run(name, "x = 'named'")
    await house.machines.snapshot(name, "keep me")
    for i in range(10):
        await house.machines.run(name, f"x = {i}")
    points = await house.machines.points(name)
    assert "keep me" in [p.name for p in points]
    assert len(points) <= 3 + 3  # beside the head, the template and the named one
    await house.machines.rollback(name, snapshot="keep me")
    assert (await house.machines.run(name, "x")).value == "'named'"
    await house.check_nothing_leaked()
    await house.machines.delete(name)
    await house.check_nothing_leaked()
    await house.close()


async def test_a_sleeping_machine_gets_a_named_snapshot_without_waking(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.hibernate(name)
    point = await house.machines.snapshot(name, "asleep")
    assert (await house.machines.get(name)).state == "asleep"
    assert [p.name for p in await house.machines.points(name) if p.snapshot == point.snapshot] == ["asleep"]


async def test_a_snapshot_name_is_given_once(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    kept = await house.machines.snapshot(name, "good")
    await house.machines.run(name, "x = 2")
    with pytest.raises(NameTaken, match=kept.snapshot):
        await house.machines.snapshot(name, "good")
    await house.machines.rollback(name, snapshot="good")
    assert (await house.machines.run(name, "x")).value == "1"


async def test_a_forgotten_snapshot_is_gone_and_its_name_is_free(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    old = await house.machines.snapshot(name, "good")
    await house.machines.run(name, "x = 2")
    await house.machines.snapshot(name, "better")
    await house.machines.forget(name, "good")
    assert old.snapshot not in [p.snapshot for p in await house.machines.points(name)]
    assert not (house.folder / old.snapshot).exists()
    with pytest.raises(SnapshotNotFound):
        await house.machines.rollback(name, snapshot=old.snapshot)
    await house.machines.run(name, "x = 3")
    await house.machines.snapshot(name, "good")
    assert (await house.machines.run(name, "x")).value == "3"


async def test_what_a_machine_starts_from_only_loses_its_name(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.hibernate(name)
    head = await house.machines.snapshot(name, "here")
    await house.machines.forget(name, "here")
    with pytest.raises(Refused, match="starts from"):
        await house.machines.forget(name, head.snapshot)
    assert (await house.machines.run(name, "x")).value == "1"


async def test_named_snapshots_have_a_limit() -> None:
    house = House(quick(named_points_max=2))
    await house.start()
    name = await new(house)
    for i, label in enumerate("ab"):
        await house.machines.run(name, f"x = {i}")
        await house.machines.snapshot(name, label)
    with pytest.raises(Refused, match="2 named snapshots"):
        await house.machines.snapshot(name, "c")
    await house.machines.forget(name, "a")
    await house.machines.run(name, "x = 3")
    await house.machines.snapshot(name, "c")
    await house.close()


async def test_a_broken_machine_says_which_points_it_has(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    kept = await house.machines.snapshot(name, "good")
    await house.machines.run(name, "crash()")
    with pytest.raises(MachineBroken) as refusal:
        await house.machines.run(name, "x")
    assert kept.snapshot in refusal.value.details["points"]  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("instruction", 7, SnapshotDamaged),
        ("disk_mb", 128, SnapshotForeign),
        ("memory_mb", 4096, SnapshotForeign),
        ("machine", None, SnapshotForeign),
    ],
)
async def test_a_manifest_that_was_rewritten_is_found_out(house: House, field: str, value: object, error: type[Exception]) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.hibernate(name)
    head = (await house.machines.get(name)).record.head
    assert head is not None
    manifest, folder = await house.snapshots.open(head)
    (folder / manifests.NAME).write_bytes(manifests.encode(replace(manifest, **{field: value})))  # pyright: ignore[reportArgumentType]
    with pytest.raises(error):
        await house.machines.wake(name)
    assert "Points kept" in str((await house.machines.get(name)).record.error)


async def test_only_points_whose_snapshots_are_on_the_disk_are_offered(house: House) -> None:
    name = await new(house)
    points = [await house.machines.snapshot(name, label) for label in ("gone", "good", "head")]
    await house.machines.hibernate(name)
    head = (await house.machines.get(name)).record.head
    assert head is not None
    shutil.rmtree(house.folder / points[0].snapshot)
    (house.folder / head / manifests.NAME).write_bytes(b"damaged")
    with pytest.raises(SnapshotDamaged):
        await house.machines.wake(name)
    told = str((await house.machines.get(name)).record.error)
    assert points[1].snapshot in told
    assert points[0].snapshot not in told
    with pytest.raises(MachineBroken) as refusal:
        await house.machines.run(name, "x")
    offered: Any = refusal.value.details["points"]
    assert points[1].snapshot in offered
    assert points[0].snapshot not in offered
    await house.machines.rollback(name, snapshot="good")
    assert (await house.machines.get(name)).state == "ready"


async def test_a_name_cannot_have_the_form_of_an_id(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    first = await house.machines.snapshot(name, "one")
    await house.machines.run(name, "x = 2")
    with pytest.raises(InvalidInput, match="form of an id"):
        await house.machines.snapshot(name, first.snapshot)
    with pytest.raises(InvalidInput):
        await house.machines.rollback(name, snapshot="x" * 1000)


async def test_what_waits_behind_a_rollback_is_cancelled_with_it_though_the_server_dies_in_the_middle(house: House) -> None:
    """Or the next one would run it, under a number that counts as saved: a loss after that would not name it."""
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name, "first")
    await house.machines.run(name, "x = 2")
    died = house.life.dead
    listen = house.life.listen

    def die(step: str) -> None:
        listen(step)
        if step == "before destroy":
            died.set()
            raise Killed

    house.machines.forge.steps._listener = die  # pyright: ignore[reportPrivateUsage]
    rolling = asyncio.ensure_future(house.machines.rollback(name, snapshot="first"))
    number, _ = await house.machines.exec(name, "x = 3")
    async with asyncio.timeout(10):
        await died.wait()
    await house.restart()
    await asyncio.gather(rolling, return_exceptions=True)
    ended = await house.machines.result(name, number)
    assert (ended.end, (await house.machines.run(name, "x")).value) == ("cancelled", "1")
