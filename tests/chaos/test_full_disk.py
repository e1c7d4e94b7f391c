"""A disk that is full at save time keeps the machine awake; it says so, and hibernates when there is room.

And one that is so full that not even the tape can be written: nothing new is accepted, and what runs waits with its end.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.server.bootstrap import close_machines, open_machines
from everforge.store.base import MachineQuery
from everforge.wire.errors import DiskFull, SaveFailed
from everforge.wire.events import Accepted, Ended, Moved, Output
from everforge.wire.ids import OWNER
from kit.real import LINGER_SECONDS, TESTED, give_template, real_machines, sandboxes_of, until_gone

pytestmark = [pytest.mark.gvisor, pytest.mark.root]

DISK_MB = 400
ACCEPTED_MAX = 3000
LEFT_MB = 12  # room for the records, not for a snapshot
FILLING_SECONDS = 4.0


@pytest.fixture
def small_disk(data: Path) -> Iterator[Path]:
    """A data folder on a disk of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "everforge-test", str(data)], check=True)
    small = data / "d"  # not the mount itself, which would look like something left behind
    small.mkdir()
    yield small
    subprocess.run(["umount", "--lazy", str(data)], check=True)  # a failed save leaves a descriptor open in the sandbox until that is gone


def fill(folder: Path, left_mb: int) -> Path:
    free = os.statvfs(folder)
    ballast = folder / "ballast"
    with open(ballast, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - left_mb * 1024 * 1024)
    return ballast


async def test_a_full_disk_at_save_time(small_disk: Path) -> None:
    async with real_machines(small_disk, replace(TESTED, save_retry_seconds=0.3)) as machines:
        name = (await machines.create(NewMachine(idle_seconds=1.0))).record.name
        await machines.run(name, "x = bytearray(30 << 20); x[7] = 7")
        ballast = fill(small_disk, LEFT_MB)
        with pytest.raises((DiskFull, SaveFailed)):
            await machines.hibernate(name)
        async with asyncio.timeout(30):
            await failed_saves(machines, name, 2)  # the idle timer has tried, too
        async with asyncio.timeout(10):
            while (view := await machines.get(name)).state != "ready":  # it may be trying again right now
                await asyncio.sleep(0.02)
        assert "space" in (view.record.error or "") or "full" in (view.record.error or ""), view.record.error
        assert (await machines.run(name, "x[7]")).value == "7"
        assert not list((small_disk / "snapshots").glob(".partial-*")), "half a snapshot takes what room there is"
        ballast.unlink()
        async with asyncio.timeout(30):
            while (await machines.get(name)).state != "asleep":
                await asyncio.sleep(0.1)
        assert (await machines.get(name)).record.error is None
        assert (await machines.run(name, "x[7]")).value == "7"
    await until_gone(small_disk)


async def failed_saves(machines: Machines, name: str, count: int) -> None:
    async for event in machines.read(name, follow=True):
        count -= isinstance(event, Moved) and event.event == "save_failed"
        if not count:
            return


LINES = 60
PRINTER = f"import time\nfor i in range({LINES}):\n    print('line', i, 'x' * 2000)\n    time.sleep(0.02)\n'done'"


async def test_a_disk_that_is_full_for_the_tape_itself(small_disk: Path) -> None:
    """Nothing that was acknowledged is lost, nothing that was refused leaves a trace, and what ran meanwhile comes to its end."""
    async with real_machines(small_disk) as machines:
        busy, other = [(await machines.create(NewMachine())).record.name for _ in range(2)]
        accepted = [(await machines.run(other, f"{i}")).instruction for i in range(3)]
        await machines.run(busy, "x = 1")
        running, _ = await machines.exec(busy, PRINTER)
        await some_lines(machines, busy, running)
        ballast = fill(small_disk, 0)
        with pytest.raises(DiskFull):
            for _ in range(ACCEPTED_MAX):  # the log of the database has some room of its own
                accepted.append((await machines.exec(other, "1"))[0])
        with pytest.raises(DiskFull):
            await machines.exec(busy, "x = 2")
        result = asyncio.ensure_future(machines.result(busy, running))
        await asyncio.wait([result], timeout=LINES * 0.02 + 1)
        assert not result.done(), "an end was told that is not on the tape"
        ballast.unlink()
        async with asyncio.timeout(30):
            assert (await result).value == "'done'"
        events = [e async for e in machines.read(busy)]
        assert [line.split()[1] for e in events if isinstance(e, Output) for line in e.lines] == [str(i) for i in range(LINES)]
        assert [e.instruction for e in events if isinstance(e, Ended)] == [e.instruction for e in events if isinstance(e, Accepted)] == [0, 1]
        assert (await machines.run(busy, "x")).value == "1"
        assert [(await machines.result(other, number)).end for number in accepted] == ["value"] * len(accepted)
        assert (await machines.run(other, "1 + 1")).value == "2"
        assert [e.instruction async for e in machines.read(other) if isinstance(e, Accepted)][: len(accepted)] == accepted
    await until_gone(small_disk)


async def some_lines(machines: Machines, name: str, instruction: int) -> None:
    async for event in machines.read(name, follow=True):
        if isinstance(event, Output) and event.instruction == instruction:
            return


async def test_a_server_that_stops_on_a_full_disk_leaves_a_caretaker_who_hibernates_its_machines_when_there_is_room(small_disk: Path) -> None:
    settings = replace(TESTED, save_retry_seconds=0.5)
    give_template(small_disk)
    machines, folder = await open_machines(small_disk, settings, warden_linger_seconds=LINGER_SECONDS)
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "x = bytearray(30 << 20); x[7] = 7")
    ballast = fill(small_disk, LEFT_MB)
    await close_machines(machines, folder)
    assert is_awake(small_disk), "its memory was lost"
    async with asyncio.timeout(60):
        while folder.caretaker_log.read_text().count("could not be hibernated") < 2:  # it does not give up
            await asyncio.sleep(0.1)
    assert is_awake(small_disk)
    ballast.unlink()
    await until_gone(small_disk, seconds=60)
    async with real_machines(small_disk) as machines:
        assert (await machines.get(name)).state == "asleep"
        assert (await machines.run(name, "x[7]")).value == "7"
    await until_gone(small_disk)


def is_awake(data: Path) -> bool:
    return any("runsc" in command for command in sandboxes_of(data).values())


FILLER = """
import os
file = open("big", "wb", buffering=0)
while True:
    try:
        file.write(os.urandom(1 << 16))
    except OSError:
        print("no room")
"""


async def filled_by_a_machine(machines: Machines, folder: Path) -> tuple[str, int]:
    """Its own disk may take more than there is: it has all of it, and goes on trying."""
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "x = 1")
    running, _ = await machines.exec(name, FILLER, timeout_seconds=FILLING_SECONDS)
    async with asyncio.timeout(60):
        keeper = machines.forge.kept(OWNER, name)
        assert keeper is not None
        await keeper.dossier.waits_for_room.wait()
    assert os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < 1024 * 1024
    return name, running


async def test_a_machine_that_fills_the_disk_can_be_deleted(small_disk: Path) -> None:
    async with real_machines(small_disk) as machines:
        name, _ = await filled_by_a_machine(machines, small_disk)
        async with asyncio.timeout(20):
            await machines.delete(name)
        assert name not in [view.record.name for view in await machines.list(MachineQuery())]
        other = (await machines.create(NewMachine())).record.name
        assert (await machines.run(other, "1 + 1")).value == "2"
    await until_gone(small_disk)


@pytest.mark.parametrize("way", ["reset", "rollback"])
async def test_a_machine_that_fills_the_disk_can_go_back_when_what_it_has_is_discarded(small_disk: Path, way: str) -> None:
    async with real_machines(small_disk) as machines:
        name, _ = await filled_by_a_machine(machines, small_disk)
        async with asyncio.timeout(30):
            await (machines.reset(name, discard=True) if way == "reset" else machines.rollback(name, discard=True))
            assert (await machines.run(name, "import os; os.path.exists('big')")).value == "False"
    await until_gone(small_disk)


async def test_one_that_has_filled_the_disk_and_does_nothing_can_be_reset_too(small_disk: Path) -> None:
    async with real_machines(small_disk) as machines:
        name = (await machines.create(NewMachine())).record.name
        await machines.run(name, "import os; file = open('big', 'wb')")
        await machines.run(name, "file.write(os.urandom(100 << 20)); file.flush()")
        ballast = fill(small_disk, 1)  # something may still be written
        with pytest.raises(DiskFull):
            for _ in range(ACCEPTED_MAX):
                await machines.run(name, "1")
        async with asyncio.timeout(20):
            await machines.reset(name, discard=True)
            assert (await machines.run(name, "import os; os.path.exists('big')")).value == "False"
        ballast.unlink()
    await until_gone(small_disk)


async def test_who_waits_for_an_instruction_that_fills_the_disk_is_told_so(small_disk: Path) -> None:
    async with real_machines(small_disk) as machines:
        name, running = await filled_by_a_machine(machines, small_disk)
        async with asyncio.timeout(FILLING_SECONDS + 20):
            with pytest.raises(DiskFull, match="room"):
                await machines.result(name, running)
            with pytest.raises(DiskFull, match="room"):
                async for _ in machines.read(name, follow=True, instruction=running):
                    pass
        await machines.delete(name)
    await until_gone(small_disk)


def test_a_server_on_a_full_disk_starts_or_says_in_one_sentence_what_to_do(small_disk: Path) -> None:
    give_template(small_disk)
    assert "ready http" in served(small_disk)
    for left_kb in (0, 64, 128, 256, 512, 1024):
        ballast = small_disk / "ballast"
        free = os.statvfs(small_disk)
        with open(ballast, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - left_kb * 1024)
        said = served(small_disk)
        assert "ready http" in said or "Free some megabytes" in said, (left_kb, said)
        assert "Traceback" not in said, (left_kb, said)
        ballast.unlink()
    assert "ready http" in served(small_disk)


def served(data: Path) -> str:
    """What a server says from its start to its end, which is asked for as soon as it is ready."""
    command = [sys.executable, "-m", "everforge.server", "serve", "--data", str(data), "--port", "0"]
    settings = {**os.environ, "EVERFORGE_IMAGE": "minimal"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings) as server:
        assert server.stdout is not None
        said = ""
        for line in server.stdout:
            said += line
            if line.startswith("ready "):
                server.terminate()
    return said
