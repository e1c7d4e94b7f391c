from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.engine.base import Ending, How
from everforge.engine.fake import FakeSandbox
from everforge.machines import dossier
from everforge.store.base import Change
from everforge.store.memory import MemoryStore
from everforge.wire.errors import DiskFull, EverforgeError, MachineBroken, SaveFailed, SnapshotDamaged
from everforge.wire.events import Ended, Lost, Moved, Output
from kit.house import House, NewMachine, quick


async def new(house: House, **wanted: object) -> str:
    return (await house.machines.create(NewMachine(**wanted))).record.name  # pyright: ignore[reportArgumentType]


async def arrows(house: House, name: str) -> list[str]:
    return [e.event async for e in house.machines.read(name) if isinstance(e, Moved)]


async def test_an_idle_machine_goes_to_sleep_and_keeps_no_sandbox(house: House) -> None:
    name = await new(house, idle_seconds=0.02)
    await house.machines.run(name, "x = 1")
    await house.until(name, "asleep")
    async with asyncio.timeout(5):
        while house.host.sandboxes or len(house.machines.forge.keepers):  # it is destroyed after it is recorded
            await asyncio.sleep(0.005)


async def test_exec_on_a_sleeping_machine_wakes_it_once(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 0")
    await house.machines.hibernate(name)
    numbers = await asyncio.gather(*(house.machines.exec(name, "x += 1") for _ in range(10)))
    assert sorted(n for n, _ in numbers) == list(range(1, 11))
    assert (await house.machines.run(name, "x")).value == "10"
    assert (await arrows(house, name)).count("woken") == 1


async def test_a_plain_wake_keeps_its_random_generator(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "random.seed(42)")
    await house.machines.hibernate(name)
    here = (await house.machines.run(name, "random.random()")).value
    other = await new(house)
    await house.machines.run(other, "random.seed(42)")
    assert (await house.machines.run(other, "random.random()")).value == here


async def test_what_is_wanted_during_a_save_stays_awake(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    keeper = next(iter(house.machines.forge.keepers.all()))
    room = asyncio.create_task(keeper.make_room())
    await asyncio.sleep(0)
    ended = await house.machines.run(name, "x")
    assert ended.value == "1"
    await room
    assert "woken" not in await arrows(house, name) or room.result()


async def test_a_full_disk_keeps_it_awake_says_so_and_lets_it_sleep_when_there_is_room(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    house.host.disk_full = True
    with pytest.raises(SaveFailed, match="no space"):
        await house.machines.hibernate(name)
    view = await house.machines.get(name)
    assert view.state == "ready"
    assert "no space" in (view.record.error or "")
    assert (await house.machines.run(name, "x")).value == "1"
    await house.machines.update(name, idle_seconds=0.02)
    await asyncio.sleep(0.1)
    assert (await house.machines.get(name)).state in ("ready", "hibernating")  # it tries again and again
    house.host.disk_full = False
    await house.until(name, "asleep")
    assert (await house.machines.get(name)).record.error is None
    assert (await house.machines.run(name, "x")).value == "1"


async def test_a_stop_on_a_full_disk_leaves_the_machine_awake_and_says_so_and_the_next_server_has_it(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    name, other = await new(house), await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.hibernate(other)
    house.host.disk_full = True
    async with asyncio.timeout(5):
        assert await house.machines.forge.stop() == [name]
    assert f"machine {name} could not be hibernated" in caplog.text
    assert "no space" in caplog.text
    await house.start()
    assert (await house.machines.get(name)).state == "ready"
    assert (await house.machines.run(name, "x")).value == "1"
    house.host.disk_full = False
    assert await house.machines.forge.stop() == []
    await house.start()
    assert (await house.machines.get(name)).state == "asleep"


async def test_a_stop_ends_although_not_even_the_tape_can_be_written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    house.host.disk_full = True
    commit = house.store.commit

    async def full(change: Change) -> object:
        if change.set.get("residence") == "hibernating":
            return await commit(change)
        raise DiskFull("the database's disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(house.store, "commit", full)
        async with asyncio.timeout(5):
            assert await house.machines.forge.stop() == [name]
    house.host.disk_full = False
    await house.start()
    assert (await house.machines.run(name, "x")).value == "1"


async def test_waiting_for_room_is_said_when_it_begins_and_when_it_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dossier, "FULL_DISK_PAUSE_SECONDS", 0.001)
    name = await new(house)
    await house.machines.run(name, "x = 1")
    commit, tries, full_tries = house.store.commit, 0, 20

    async def full(change: Change) -> object:
        nonlocal tries
        if any(isinstance(e, Ended) for e in change.events) and (tries := tries + 1) <= full_tries:
            raise DiskFull("the database's disk is full")
        return await commit(change)

    monkeypatch.setattr(house.store, "commit", full)
    assert (await house.machines.run(name, "x")).value == "1"
    assert tries == full_tries + 1
    said = [r.getMessage() for r in caplog.records if "room" in r.getMessage()]
    assert said == [
        f"machine {name} waits for room on the disk: the database's disk is full",
        f"machine {name} found room on the disk, and goes on",
    ]


async def test_a_wake_that_fails_is_tried_again_and_the_machine_stays_asleep_in_the_end(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.hibernate(name)
    house.host.failing_restores = 2
    assert (await house.machines.run(name, "x")).value == "1"
    await house.machines.hibernate(name)
    house.host.failing_restores = 3
    ended = await house.machines.run(name, "x")
    assert (ended.end, ended.retry) == ("error", "later")
    assert (await house.machines.get(name)).state == "asleep"
    assert (await house.machines.run(name, "x")).value == "1"


@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
async def test_a_damaged_snapshot_breaks_the_machine_and_the_earlier_points_bring_it_back(house: House, harm: str) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name, "good")
    await house.machines.run(name, "x = 2")
    await house.machines.hibernate(name)
    head = (await house.machines.get(name)).record.head
    memory = house.folder / str(head) / "pages.img"
    data = memory.read_bytes()
    memory.chmod(0o600)
    if harm == "flip":
        memory.write_bytes(data[:10] + bytes([data[10] ^ 1]) + data[11:])
    elif harm == "truncate":
        memory.write_bytes(data[:-1])
    else:
        memory.unlink()
    ended = await house.machines.run(name, "x")
    assert ended.end == "lost"
    assert "pages.img" in (ended.error or "")
    view = await house.machines.get(name)
    assert view.state == "broken"
    assert "good" in (view.record.error or "")
    assert not house.host.sandboxes
    with pytest.raises(MachineBroken):
        await house.machines.exec(name, "x")
    with pytest.raises(SnapshotDamaged):
        await house.machines.rollback(name, snapshot=head)
    assert (await house.machines.get(name)).state == "broken"
    await house.machines.rollback(name, snapshot="good")
    assert (await house.machines.run(name, "x")).value == "1"


async def test_a_machine_that_runs_out_of_memory_is_broken_and_says_why(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name)
    running, _ = await house.machines.exec(name, "exhaust()")
    assert (await house.machines.result(name, running)).end == "lost"
    view = await house.machines.get(name)
    assert view.state == "broken"
    assert "out_of_memory" in (view.record.error or "")
    await house.machines.rollback(name)
    assert (await house.machines.run(name, "x")).value == "1"


async def test_a_machine_lost_with_its_host_is_back_at_its_last_snapshot_and_the_tape_says_what_is_lost(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.hibernate(name)
    await house.machines.run(name, "x = 2")
    await house.kill()
    house.host.lose_everything()
    await house.start()
    after = await house.machines.run(name, "x")
    assert after.value == "1"
    assert "lost" in (after.note or "")
    lost = [e async for e in house.machines.read(name) if isinstance(e, Lost)]
    assert [(e.first_instruction, e.last_instruction) for e in lost] == [(1, 1)]
    assert (await house.machines.run(name, "x")).note is None


async def test_memory_is_made_by_putting_the_longest_idle_machine_to_sleep() -> None:
    house = House(quick(host_memory_mb=2048, memory_overcommit=1.0, memory_mb=1024))
    await house.start()
    names = [await new(house) for _ in range(3)]
    for name in names:
        await house.machines.run(name, "x = 1")
    states = [(await house.machines.get(n)).state for n in names]
    assert states == ["asleep", "ready", "ready"]
    for name in names[:2]:
        await house.machines.exec(name, "hang()", timeout_seconds=600)
        await house.until(name, "busy")
    refused = await house.machines.run(names[2], "x")
    assert (refused.end, refused.retry) == ("error", "later")
    await house.close()


@pytest.mark.parametrize("code", ["hang()", "endure()"])
async def test_the_last_stop_hibernates_everything_and_the_next_start_runs_what_was_accepted(house: House, code: str) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    running, _ = await house.machines.exec(name, code)
    waiting, _ = await house.machines.exec(name, "'ran'")
    await house.machines.forge.stop(at_any_price=True)
    assert not house.host.sandboxes
    await house.start()
    assert (await house.machines.result(name, running)).end == "interrupted"
    assert (await house.machines.result(name, waiting)).value == ("'ran'" if code == "hang()" else None)  # it may have counted on the variables


async def test_an_orderly_stop_leaves_a_machine_awake_whose_instruction_runs_on(house: House) -> None:
    name, idle = await new(house), await new(house)
    await house.machines.run(idle, "x = 1")
    running, _ = await house.machines.exec(name, "x = 1; print('a'); sleep(0.6)", timeout_seconds=60)
    waiting, _ = await house.machines.exec(name, "x")
    await house.until(name, "busy")
    assert list(await house.machines.forge.stop()) == [name]
    assert len(house.host.sandboxes) == 1
    await house.start()
    assert (await house.machines.result(name, running)).end == "value"
    assert (await house.machines.result(name, waiting)).value == "1"
    assert [line async for event in house.machines.read(name) if isinstance(event, Output) for line in event.lines] == ["a"]


@pytest.mark.parametrize("turns", range(0, 12, 3))
async def test_an_orderly_stop_does_not_wait_for_what_was_only_just_accepted(house: House, turns: int) -> None:
    """It is on its way to the tape, or already with the guest; or its machine is being woken for it."""
    for asleep in (False, True):
        name = await new(house)
        await house.machines.run(name, "x = 1")
        if asleep:
            await house.machines.hibernate(name)
        asking = asyncio.ensure_future(house.machines.exec(name, "hang()", timeout_seconds=600))
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(60):  # far less than it would run
            await house.machines.forge.stop(at_any_price=True)
        await asyncio.wait([asking])
        assert not house.host.sandboxes
        await house.start()
        if not asking.exception():
            await house.machines.interrupt(name, pending=True)
        await house.machines.delete(name)


async def test_a_server_that_hands_over_leaves_its_machines_running(house: House) -> None:
    name = await new(house)
    running, _ = await house.machines.exec(name, "print('a'); sleep(0.5)")
    async for event in house.machines.read(name, follow=True):
        if isinstance(event, Output):
            break
    await house.machines.forge.stop(hibernate=False)
    assert len(house.host.sandboxes) == 1
    await house.start()
    assert (await house.machines.result(name, running)).end == "value"


async def test_the_environment_is_given_once_and_then_the_users(house: House) -> None:
    name = (await house.machines.create(NewMachine(env={"COLOUR": "blue"}))).record.name
    assert (await house.machines.run(name, "environ['COLOUR']")).value == "'blue'"
    await house.machines.run(name, "environ['COLOUR'] = 'red'")
    await house.machines.hibernate(name)
    assert (await house.machines.run(name, "environ['COLOUR']")).value == "'red'"
    [fork] = await house.machines.fork(name)
    assert (await house.machines.run(fork.record.name, "environ['COLOUR']")).value == "'red'"
    await house.machines.reset(name)
    assert (await house.machines.run(name, "environ['COLOUR']")).value == "'blue'"


async def test_a_machine_that_is_taken_over_gets_the_limits_of_the_new_server(house: House) -> None:
    name = (await house.machines.create(NewMachine(env={"COLOUR": "blue"}))).record.name
    await house.machines.run(name, "environ['COLOUR'] = 'red'")
    await house.kill()
    house.settings = replace(house.settings, open_files=77)
    await house.start()
    assert (await house.machines.run(name, "limits['open_files'], environ['COLOUR']")).value == "(77, 'red')"


async def test_what_the_computer_took_with_it_is_told_as_such() -> None:
    store = MemoryStore()
    house = House(store=store)
    await house.start()
    name = await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.snapshot(name)
    await house.machines.run(name, "x = 2")
    await house.kill()
    house.host.lose_everything()
    store.power_cut()
    await house.start()
    ended = await house.machines.run(name, "x")
    assert ended.value == "1"
    assert "the computer went down" in (ended.note or "")
    await house.close()


async def test_a_sandbox_that_is_lost_in_a_save_is_told_as_what_it_was(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")

    async def die(sandbox: FakeSandbox, folder: Path) -> None:
        sandbox.end(Ending(How.OUT_OF_MEMORY, "over its limit"))
        raise SaveFailed("it died")

    monkeypatch.setattr(FakeSandbox, "save", die)
    with pytest.raises(EverforgeError):
        await house.machines.hibernate(name)
    await house.until(name, "broken")
    assert "over its limit" in str((await house.machines.get(name)).record.error)


async def test_a_template_that_rots_is_made_again(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    [template] = [p.snapshot for p in await house.machines.points(name)]
    file = next(f for f in (house.folder / template).iterdir() if f.suffix != ".json")
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    assert (await house.machines.run(await new(house), "1 + 1")).value == "2"
    await house.machines.reset(name)
    assert (await house.machines.run(name, "1 + 1")).value == "2"


async def test_the_time_of_the_last_use_is_seen_at_once_and_outlives_a_sleep(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "1")
    first = (await house.machines.get(name)).record.last_used_at
    await house.machines.run(name, "1")
    last = (await house.machines.get(name)).record.last_used_at
    assert last > first
    await house.machines.hibernate(name)
    await house.restart()
    assert (await house.machines.get(name)).record.last_used_at == last


async def test_damage_is_told_at_once_although_the_guest_of_damaged_memory_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(quick(guest_answer_seconds=3600.0))
    await house.start()
    await house.machines.create(NewMachine(name="m"))
    await house.machines.run("m", "x = 1")
    await house.machines.hibernate("m")

    async def find_damage(*_: object) -> None:
        raise SnapshotDamaged("pages.img has changed")

    monkeypatch.setattr(house.snapshots, "verify_large", find_damage)
    monkeypatch.setattr(FakeSandbox, "feed", lambda *_: None)
    async with asyncio.timeout(10):
        ended = await house.machines.run("m", "x")
    assert ended.end == "lost"
    assert "pages.img has changed" in (ended.error or "")
    assert not house.host.sandboxes
    await house.close()
