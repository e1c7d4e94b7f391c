"""Whatever is wrong with a snapshot is found before anything runs, said clearly, and the previous point is offered.

The machine whose snapshot is harmed has a thread that prints as soon as it runs, and the server is heard step by step: no line, and no `go`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.store import manifests
from everforge.store.base import Change
from everforge.wire.errors import MachineBroken
from everforge.wire.events import Ended, Output, Position
from everforge.wire.ids import OWNER, SnapshotId
from kit.length import LONG, TIMEOUT_FACTOR, length
from kit.real import real_machines, until_gone
from kit.stepclock import StepClock

pytestmark = pytest.mark.gvisor

HEAD = """
import threading, time
x = 'head'
def trace():
    while True:
        print('it runs')
        time.sleep(0.005)
threading.Thread(target=trace, daemon=True).start()
"""
Harm = Callable[[Path], None]


@dataclass
class Sleeper:
    """A sleeping machine with a good point before its head, whose head is to be harmed."""

    machines: Machines
    clock: StepClock
    name: str
    snapshots: Path
    spare: Path  # a copy of the head's folder
    folder: Path

    async def repair(self) -> None:
        """As if the harm had not been done, and nobody had seen it. What breaks a machine never changes its points; only its record is set back."""
        with contextlib.suppress(FileNotFoundError):
            self.folder.unlink() if self.folder.is_symlink() or self.folder.is_file() else shutil.rmtree(self.folder)
        shutil.copytree(self.spare, self.folder)
        async with asyncio.timeout(10):
            while self.machines.forge.keepers.named(OWNER, self.name):
                await asyncio.sleep(0.005)
        record = (await self.machines.get(self.name)).record
        await self.machines.forge.store.commit(Change(machine=record.id, set={"residence": "asleep", "head": self.folder.name, "error": None}))

    async def check_found(self, case: str, *words: str) -> None:
        try:
            await self._check_found(words)
        except BaseException as e:
            raise AssertionError(f"{case}: {e}") from e

    async def _check_found(self, words: tuple[str, ...]) -> None:
        end = await self.end_of_tape()
        self.clock.forget()
        ended = await self.machines.run(self.name, "x")
        view = await self.machines.get(self.name)
        assert (ended.end, view.state) == ("lost", "broken"), ended
        for word in (*words, self.folder.name, "(good, after instruction 0)"):
            assert word in (view.record.error or ""), f"{word} is not in: {view.record.error}"
        with pytest.raises(MachineBroken, match="good"):
            await self.machines.exec(self.name, "x")
        assert not self.clock.times("go"), "its processes were let go"
        told = [e async for e in self.machines.read(self.name, end)]
        assert [e.instruction for e in told if isinstance(e, Ended)] == [ended.instruction]
        assert not [e for e in told if isinstance(e, Output)], "something of it ran"
        assert not await self.machines.forge.engine.survivors(), "its sandbox is left"

    async def end_of_tape(self) -> Position:
        return await self.machines.forge.store.end_position((await self.machines.get(self.name)).record.id)

    async def check_good_point(self) -> None:
        await self.machines.rollback(self.name, snapshot="good")
        assert (await self.machines.run(self.name, "x")).value == "'good'"
        await self.machines.hibernate(self.name)

    async def check_head(self) -> None:
        """The same head without harm: what was looked for in vain is there at once."""
        end = await self.end_of_tape()
        self.clock.forget()
        assert (await self.machines.run(self.name, "x")).value == "'head'"
        assert self.clock.times("go") == 1
        async with asyncio.timeout(10):
            async for event in self.machines.read(self.name, end, follow=True):
                if isinstance(event, Output) and "it runs" in event.lines:
                    break
        await self.machines.hibernate(self.name)


@pytest.fixture
async def sleeper(data: Path, tmp_path: Path) -> AsyncIterator[Sleeper]:
    clock = StepClock()
    async with real_machines(data, steps=clock.steps) as machines:
        name = (await machines.create(NewMachine())).record.name
        await machines.run(name, "x = 'good'")
        await machines.snapshot(name, "good")
        await machines.run(name, HEAD)
        await machines.hibernate(name)
        folder = data / "snapshots" / str((await machines.get(name)).record.head)
        shutil.copytree(folder, tmp_path / "spare")
        with machines.forge.snapshots.hold(SnapshotId(folder.name)):  # once it is packed, a file that is missing would be no harm
            yield Sleeper(machines, clock, name, data / "snapshots", tmp_path / "spare", folder)
    await until_gone(data)


def flip_a_bit(where: Callable[[int], int], bit: int = 0) -> Harm:
    def flip(file: Path) -> None:
        with open(file, "r+b") as f:
            f.seek(where(file.stat().st_size))
            (byte,) = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ (1 << bit)]))

    return flip


def overwrite(file: Path) -> None:
    """So much of it that no guest would come up."""
    size = file.stat().st_size
    with open(file, "r+b") as f:
        f.seek(size // 4)
        f.write(bytes(size // 2))


def link_elsewhere(path: Path) -> None:
    elsewhere = path.rename(path.parent.parent / f".elsewhere-{path.name}")
    path.symlink_to(elsewhere)


def put_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


HARMS: dict[str, Harm] = {
    "first byte": flip_a_bit(lambda size: 0),
    "middle byte": flip_a_bit(lambda size: size // 2),
    "last byte": flip_a_bit(lambda size: size - 1),
    "half overwritten": overwrite,
    "empty": lambda file: os.truncate(file, 0),
    "missing": Path.unlink,
    "a link": link_elsewhere,
    "a pipe": put_a_pipe,
}


@pytest.mark.slow
async def test_any_harm_to_any_file_of_a_snapshot_is_found_before_anything_runs(sleeper: Sleeper) -> None:
    files = {file.name for file in sleeper.folder.iterdir()}
    assert files >= {"checkpoint.img", "pages.img", "pages_meta.img", "manifest.json"}
    for file in sorted(files):
        for kind, harm in HARMS.items():
            harm(sleeper.folder / file)
            await sleeper.check_found(f"{file} with {kind}", file.removesuffix(".json"))
            await sleeper.repair()
        (sleeper.folder / file).unlink()
        await sleeper.check_found(f"{file} that is missing")
        await sleeper.check_good_point()
        await sleeper.repair()
    await sleeper.check_head()


TORN_AT = (1, 511, 4096, 65_536, 1_000_000, -4096, -1)  # bytes from the beginning, or from the end
BITS = length(4, 200)  # of each file


def tear(at: int, *, zeros: bool) -> Harm:
    """A write that did not come to its end: the file ends there, or goes on with what the disk had in its place."""

    def harm(file: Path) -> None:
        size = file.stat().st_size
        os.truncate(file, at % size)
        if zeros:
            os.truncate(file, size)

    return harm


@pytest.mark.slow
async def test_a_torn_write_of_any_size_is_found_before_anything_runs(sleeper: Sleeper) -> None:
    torn = 0
    for file in sorted(sleeper.folder.iterdir()):
        whole = file.read_bytes()
        for at in TORN_AT:
            for zeros in (False, True):
                if abs(at) >= len(whole) or (zeros and not any(whole[at % len(whole) :])):
                    continue  # there would be no difference
                tear(at, zeros=zeros)(file)
                await sleeper.check_found(f"{file.name} torn at {at}, {'zeros' if zeros else 'nothing'} behind it", file.stem)
                await sleeper.repair()
                torn += 1
    assert torn > 20
    await sleeper.check_head()


@pytest.mark.slow
@pytest.mark.timeout(300 * TIMEOUT_FACTOR)
async def test_one_flipped_bit_anywhere_is_found_before_anything_runs(sleeper: Sleeper) -> None:
    draw = random.Random(f"bits {LONG and time.time_ns()}")
    for file in sorted(sleeper.folder.iterdir()):
        for _ in range(BITS):
            at, bit = draw.randrange(file.stat().st_size), draw.randrange(8)
            flip_a_bit(lambda _, at=at: at, bit)(file)
            await sleeper.check_found(f"{file.name}, bit {bit} of byte {at}", file.stem)
            await sleeper.repair()
    await sleeper.check_head()


async def test_a_folder_that_is_not_the_snapshot_any_more_is_found_before_anything_runs(sleeper: Sleeper) -> None:
    def add_a_file(folder: Path) -> None:
        (folder / "more.img").write_bytes(b"?")

    def replace_by_a_file(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.write_bytes(b"?")

    def remove(folder: Path) -> None:
        shutil.rmtree(folder)

    for harm in (remove, add_a_file, replace_by_a_file):
        harm(sleeper.folder)
        await sleeper.check_found(harm.__name__)
        await sleeper.repair()
    await sleeper.check_head()


async def test_a_folder_that_is_a_link_is_found_before_anything_runs(sleeper: Sleeper) -> None:
    link_elsewhere(sleeper.folder)
    await sleeper.check_found("a link")
    await sleeper.check_good_point()


async def test_a_manifest_of_something_else_is_found_before_anything_runs(sleeper: Sleeper) -> None:
    place = sleeper.folder / manifests.NAME
    good = next(p.snapshot for p in await sleeper.machines.points(sleeper.name) if p.name == "good")
    written = place.read_bytes()
    manifest = manifests.decode(written, SnapshotId(sleeper.folder.name))
    for words, content in {
        "engine": manifests.encode(replace(manifest, engine="another")),
        "engine build": manifests.encode(replace(manifest, engine_build="f" * 64)),
        "image": manifests.encode(replace(manifest, image="f" * 64)),
        "belongs to snapshot": (sleeper.snapshots / good / manifests.NAME).read_bytes(),
        "manifest": json.dumps({"files": {"../../etc/passwd": [1, "x"]}}).encode(),
        "a blank": written + b" ",
    }.items():
        place.unlink()
        place.write_bytes(content)
        await sleeper.check_found(words, words)
        await sleeper.repair()
    await sleeper.check_head()
