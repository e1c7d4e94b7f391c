"""Points stored by content: what they cost, that they are always there whole, and that whatever is wrong with them is found."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import random
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from everforge.store.base import Manifest
from everforge.store.disk import Disk
from everforge.store.packs import packing
from everforge.store.packs.packing import Job
from everforge.store.snapshots import SnapshotFolder
from everforge.store.threads import to_its_end
from everforge.wire.errors import DiskFull, EverforgeError, SnapshotDamaged, WakeFailed
from everforge.wire.ids import MachineId, SnapshotId, new_snapshot_id

from .test_snapshots import flip, manifest

PAGE = 4096
MACHINE = MachineId("m1")
RANDOM = random.Random(1)


class InThread:
    """A packer without a process; says when it has collected."""

    def __init__(self, disk: Disk | None = None) -> None:
        self.disk = disk or Disk()
        self.collected = asyncio.Event()
        self.jobs: list[Job] = []

    async def do(self, job: Job) -> bool:
        self.jobs.append(job)
        try:
            await to_its_end(asyncio.to_thread(packing.run, job, self.disk))
        except (OSError, EverforgeError):
            return False
        if job.snapshot is None:
            self.collected.set()
        return True

    async def close(self) -> None:
        pass


def make(root: Path, disk: Disk | None = None, packer: InThread | None = None) -> SnapshotFolder:
    return SnapshotFolder(root, disk=disk, small_bytes=100, packed_bytes=PAGE, packer=packer or InThread(disk))


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[SnapshotFolder]:
    folder = make(tmp_path / "snapshots")
    yield folder
    await folder.close()


def pages(count: int) -> list[bytes]:
    return [RANDOM.randbytes(PAGE) for _ in range(count)]


def changed(old: list[bytes], *places: int) -> list[bytes]:
    new = list(old)
    for place in places:
        new[place] = RANDOM.randbytes(PAGE)
    return new


async def save(folder: SnapshotFolder, memory: list[bytes], machine: MachineId | None = MACHINE) -> SnapshotId:
    partial = await folder.begin()
    (partial / "state.img").write_bytes(b"state")
    (partial / "pages.img").write_bytes(b"".join(memory))
    saved: Manifest = await folder.finish(partial, manifest(machine=machine))
    return saved.snapshot


async def content(folder: SnapshotFolder, id: SnapshotId) -> bytes:
    with folder.hold(id):
        found, where = await folder.open(id)
        await folder.verify_small(found, where)
        await folder.verify_large(found, where)
        assert (where / "state.img").read_bytes() == b"state"
        return (where / "pages.img").read_bytes()


def pack_of(folder: SnapshotFolder, machine: str = MACHINE) -> Path:
    return folder.root / f".pack-{machine}"


def is_packed(folder: SnapshotFolder, id: SnapshotId) -> bool:
    return not (folder.root / id / "pages.img").exists()


def slots(folder: SnapshotFolder) -> int:
    return (pack_of(folder) / "pages").stat().st_size // PAGE


def names(folder: SnapshotFolder) -> set[str]:
    return {path.name for path in folder.root.iterdir()}


# --- what it costs -----------------------------------------------------------------------------------------------------------------------


async def test_a_packed_point_takes_no_more_than_what_changed_and_is_the_same_when_it_is_opened(folder: SnapshotFolder) -> None:
    warm = pages(50)
    template = await save(folder, warm, machine=None)
    memory, points = warm, dict[SnapshotId, list[bytes]]()
    for i in range(10):
        memory = changed(memory, 3 * i, 3 * i + 1)
        points[await save(folder, memory)] = memory
    for id in points:
        await folder.pack(id, template)
    assert slots(folder) == 20
    assert all(is_packed(folder, id) for id in points)
    for id, memory in points.items():
        assert await content(folder, id) == b"".join(memory)


async def test_pages_that_moved_that_repeat_or_that_are_empty_are_not_kept_again(folder: SnapshotFolder) -> None:
    warm = pages(20)
    template = await save(folder, warm, machine=None)
    new = pages(1)
    memory = [*reversed(warm), *new, bytes(PAGE), bytes(PAGE), *new, *warm[3:9]]
    point, again = await save(folder, memory), await save(folder, [*new, *memory])
    await folder.pack(point, template)
    await folder.pack(again, template)
    assert slots(folder) == 1
    assert await content(folder, point) == b"".join(memory)
    assert await content(folder, again) == b"".join([*new, *memory])


@pytest.mark.parametrize("size", [PAGE, PAGE + 1, 2 * PAGE - 1, 4 * 1024 * 1024, 4 * 1024 * 1024 + PAGE + 7])
@pytest.mark.parametrize("with_template", [True, False])
async def test_any_size_comes_back(folder: SnapshotFolder, size: int, with_template: bool) -> None:
    data = RANDOM.randbytes(size)
    template = await save(folder, [data[: size // 2]], machine=None) if with_template else None
    point = await save(folder, [data])
    await folder.pack(point, template)
    assert is_packed(folder, point)
    assert await content(folder, point) == data


async def test_a_template_is_never_packed_and_nothing_happens_to_what_is_not_there(folder: SnapshotFolder) -> None:
    template = await save(folder, pages(5), machine=None)
    await folder.pack(template, None)
    await folder.pack(new_snapshot_id(), template)
    assert names(folder) == {template}
    assert not is_packed(folder, template)


async def test_unpacked_names_those_that_take_more_room_than_they_must(folder: SnapshotFolder) -> None:
    one, two = await save(folder, pages(3)), await save(folder, pages(3))
    await folder.pack(one, None)
    assert await folder.unpacked([one, two, new_snapshot_id()]) == [two]
    await folder.open(one)
    assert await folder.unpacked([one, two]) == [one, two]
    await folder.pack(one, None)
    assert await folder.unpacked([one]) == []


# --- who depends on whom -------------------------------------------------------------------------------------------------------------------


async def test_a_packed_point_costs_its_part_of_what_it_shares_and_a_whole_one_is_not_counted_here(folder: SnapshotFolder) -> None:
    memory = pages(1000)
    points = [await save(folder, changed(memory, i)) for i in range(10)]
    for point in points[:8]:
        await folder.pack(point, None)
    costs = await folder.costs([*points, new_snapshot_id()])
    assert set(costs) == set(points[:8])
    assert 0.9 < sum(costs.values()) / (1007 * PAGE) < 1.2
    (folder.root / points[0] / "manifest.json").write_text("damaged")
    assert set(await folder.costs(points)) == set(points[1:8])


async def test_points_stay_whole_when_their_template_is_deleted_or_made_anew(folder: SnapshotFolder) -> None:
    warm = pages(20)
    template = await save(folder, warm, machine=None)
    memory = changed(warm, 5)
    point = await save(folder, memory)
    await folder.pack(point, template)
    await folder.delete(template)
    assert slots(folder) == 1
    assert await content(folder, point) == b"".join(memory)


async def test_what_a_dropped_point_alone_needed_is_given_back_and_used_again(folder: SnapshotFolder) -> None:
    first = pages(64)
    second = changed(first, *range(10, 40))
    third = changed(second, 50)
    ids = [await save(folder, memory) for memory in (first, second, third)]
    for id in ids[:2]:
        await folder.pack(id, None)
    before = (pack_of(folder) / "pages").stat().st_blocks
    await folder.delete(ids[0])
    packer = folder._packer  # pyright: ignore[reportPrivateUsage]
    assert isinstance(packer, InThread)
    await asyncio.wait_for(packer.collected.wait(), 10)
    assert before - (pack_of(folder) / "pages").stat().st_blocks == 30 * PAGE // 512
    size = slots(folder)
    await folder.pack(ids[2], None)
    assert slots(folder) == size
    assert await content(folder, ids[1]) == b"".join(second)
    assert await content(folder, ids[2]) == b"".join(third)


async def test_the_pack_stays_for_a_fork_and_goes_with_the_last_point(folder: SnapshotFolder) -> None:
    memory = pages(10)
    forked, other = await save(folder, memory), await save(folder, changed(memory, 1))
    await folder.pack(forked, None)
    await folder.pack(other, None)
    await folder.delete(other)  # its machine is deleted; a fork of it still names the first
    assert await content(folder, forked) == b"".join(memory)
    await folder.delete(forked)
    assert names(folder) == set()


async def test_what_a_packing_that_was_cut_off_left_goes_with_the_last_point_too(tmp_path: Path) -> None:
    point = await save(folder := make(tmp_path), pages(10))
    await folder.close()
    killed = make(tmp_path, SteppingDisk(5))
    with pytest.raises(Killed):
        await killed.pack(point, None)
    await killed.close()
    assert names(folder) == {point, ".pack-m1"}
    folder = make(tmp_path)
    await folder.delete(point)
    assert names(folder) == set()
    await folder.close()


async def test_machines_do_not_share_a_pack(folder: SnapshotFolder) -> None:
    memory = pages(5)
    mine, yours = await save(folder, memory), await save(folder, memory, MachineId("m2"))
    await folder.pack(mine, None)
    await folder.pack(yours, None)
    await folder.delete(mine)
    assert names(folder) == {yours, ".pack-m2"}
    assert await content(folder, yours) == b"".join(memory)


# --- in use ------------------------------------------------------------------------------------------------------------------------------


async def test_what_is_held_is_not_packed(folder: SnapshotFolder) -> None:
    point = await save(folder, pages(5))
    with folder.hold(point):
        _, where = await folder.open(point)
        await folder.pack(point, None)
        assert (where / "pages.img").exists()
    await folder.pack(point, None)
    with folder.hold(point):
        _, where = await folder.open(point)
        await folder.pack(point, None)
        assert (where / "pages.img").exists()
    await folder.pack(point, None)
    assert not where.exists()


class PausingDisk(Disk):
    """Stops where it looks at the files of a folder, until it is told to go on."""

    def __init__(self) -> None:
        self.paused, self.go_on = threading.Event(), threading.Event()

    def sizes(self, folder: Path) -> dict[str, int]:
        self.paused.set()
        assert self.go_on.wait(10)
        return super().sizes(folder)


@pytest.mark.parametrize("what", ["open", "delete"])
async def test_who_comes_for_a_point_that_is_about_to_be_packed_does_not_wait_for_that(tmp_path: Path, what: str) -> None:
    saving = make(tmp_path / "snapshots")
    point = await save(saving, memory := pages(3))
    disk, packer = PausingDisk(), InThread()
    folder = make(tmp_path / "snapshots", disk, packer)
    packing_it = asyncio.ensure_future(folder.pack(point, None))
    await asyncio.to_thread(disk.paused.wait, 10)
    if what == "open":
        with folder.hold(point):
            disk.go_on.set()
            await packing_it
            assert not is_packed(folder, point)
    else:
        deleting = asyncio.ensure_future(folder.delete(point))
        await asyncio.sleep(0)
        disk.go_on.set()
        await asyncio.gather(packing_it, deleting)
        assert names(folder) == set()
    assert packer.jobs == []
    if what == "open":
        await folder.pack(point, None)
        assert is_packed(folder, point)
        assert await content(folder, point) == b"".join(memory)
    await folder.close()
    await saving.close()


async def test_many_open_pack_and_delete_at_once_and_all_that_is_open_is_right(folder: SnapshotFolder) -> None:
    memory = pages(30)
    template = await save(folder, memory, machine=None)
    points = {await save(folder, new := changed(memory, i)): b"".join(new) for i in range(6)}
    doomed = await save(folder, changed(memory, 20))

    async def use(id: SnapshotId) -> None:
        for _ in range(5):
            assert await content(folder, id) == points[id]
            await folder.pack(id, template)

    async with asyncio.timeout(60):
        await asyncio.gather(*(use(id) for id in [*points, *points]), folder.pack(doomed, template), folder.delete(doomed))
    assert doomed not in names(folder)


async def test_a_cancelled_open_leaves_nothing_half_done(folder: SnapshotFolder) -> None:
    memory = pages(2000)
    point = await save(folder, memory)
    await folder.pack(point, None)
    opening = asyncio.ensure_future(folder.open(point))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not [name for name in names(folder) if name.startswith(".partial")]
    assert await content(folder, point) == b"".join(memory)


# --- crashes and faults --------------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


class SteppingDisk(Disk):
    """Counts what is done; at one of the steps it fails, or its process is killed and nothing that it does afterwards has an effect."""

    def __init__(self, at: int = -1, error: BaseException | None = None) -> None:
        self.at = at
        self.error = error or Killed()
        self.done: list[str] = []

    def step(self, name: str) -> None:
        self.done.append(name)
        count = len(self.done) - 1
        if count == self.at or (count > self.at >= 0 and isinstance(self.error, Killed)):
            raise self.error


def _stepping(name: str) -> Callable[..., Any]:
    def act(self: SteppingDisk, *args: Any, **options: Any) -> Any:
        self.step(f"{name} {args[0].name}" if isinstance(args[0], Path) else name)
        return getattr(Disk, name)(self, *args, **options)

    return act


for step in (
    "make_folder",
    "write_file",
    "sync",
    "rename",
    "replace",
    "link",
    "remove_file",
    "remove_tree",
    "open_file",
    "write_at",
    "truncate",
    "punch",
):
    setattr(SteppingDisk, step, _stepping(step))


FAULTS = pytest.mark.parametrize("error", [None, errno.ENOSPC, errno.EIO], ids=["killed", "full", "broken"])


def stopping(at: int, error: int | None) -> SteppingDisk:
    return SteppingDisk(at, None if error is None else OSError(error, os.strerror(error)))


@FAULTS
async def test_at_whatever_step_packing_ends_every_point_is_still_there(tmp_path: Path, error: int | None) -> None:
    warm = pages(8)
    memories = [changed(warm, 1), changed(warm, 1, 2), changed(warm, 3)]

    async def prepare(root: Path) -> list[SnapshotId]:
        folder = make(root)
        ids = [await save(folder, warm, machine=None), *[await save(folder, memory) for memory in memories]]
        await folder.pack(ids[1], ids[0])
        await folder.pack(ids[2], ids[0])
        await folder.delete(ids[1])
        await folder.close()
        return ids

    at, disk = 0, SteppingDisk()
    for at in itertools.count():
        template, _, *ids = await prepare(tmp_path / str(at))
        disk = stopping(at, error)
        folder = make(tmp_path / str(at), disk)
        with contextlib.suppress(Killed):
            await folder.pack(ids[1], template)
        await folder.close()
        if at >= len(disk.done):
            break  # it came to its end
        healthy = make(folder.root)
        await healthy.sweep(frozenset({template, *ids}), partials_too=True)
        for _ in range(2):
            for id, memory in zip(ids, memories[1:], strict=True):
                assert await content(healthy, id) == b"".join(memory), disk.done
                await healthy.pack(id, template)
                assert is_packed(healthy, id), disk.done
        assert slots(healthy) == 3, disk.done
        assert names(healthy) == {template, *ids, ".pack-m1"}
        await healthy.close()
    new = next(step for step in disk.done if step.startswith("replace ")).removeprefix("replace ")
    order = ["write_at", "sync pages", f"write_file {new}", f"replace {new}", "sync .pack-m1", f"sync {at}", "remove_file pages.img"]
    assert [step for step in disk.done if step in order[1:]] == order[1:]
    assert max(i for i, step in enumerate(disk.done[: disk.done.index(order[-1])]) if step == "write_at") < disk.done.index("sync pages")


@FAULTS
async def test_at_whatever_step_unpacking_ends_nothing_is_lost_and_nothing_half_done_is_used(tmp_path: Path, error: int | None) -> None:
    memory = pages(8)
    folder = make(tmp_path)
    template = await save(folder, memory[:4], machine=None)
    point = await save(folder, memory)
    await folder.pack(point, template)
    await folder.close()
    before = names(folder)
    at, disk = 0, SteppingDisk()
    for at in itertools.count():
        disk = stopping(at, error)
        folder = make(tmp_path, disk)
        (raised,) = await asyncio.gather(folder.open(point), return_exceptions=True)
        if error is None:
            assert at >= len(disk.done) or isinstance(raised, Killed)
        elif at < len(disk.done):
            assert isinstance(raised, DiskFull if error == errno.ENOSPC else (WakeFailed, SnapshotDamaged))
            assert names(folder) == before
            assert await content(folder, point) == b"".join(memory)
        await folder.close()
        healthy = make(tmp_path)
        await healthy.sweep(frozenset({template, point}), partials_too=True)
        assert names(healthy) == before
        assert await content(healthy, point) == b"".join(memory)
        await healthy.pack(point, template)
        await healthy.close()
        if at >= len(disk.done):
            break
    assert at > 5


@FAULTS
async def test_at_whatever_step_deleting_ends_the_others_are_there_and_the_next_start_ends_it(tmp_path: Path, error: int | None) -> None:
    memory = pages(8)
    at, disk = 0, SteppingDisk()
    for at in itertools.count():
        folder = make(tmp_path / str(at))
        kept, gone = await save(folder, memory), await save(folder, changed(memory, *range(4)))
        await folder.pack(gone, None)
        await folder.pack(kept, None)
        await folder.close()
        disk = stopping(at, error)
        folder = make(folder.root, disk)
        with contextlib.suppress(Killed, EverforgeError):
            await folder.delete(gone)
            await folder.delete(kept)
        with contextlib.suppress(Killed):
            await folder.close()
        healthy = make(folder.root)
        if kept in names(healthy):
            await healthy.sweep(frozenset({kept}), partials_too=True)
            assert await content(healthy, kept) == b"".join(memory)
            assert gone not in names(healthy)
            assert (pack_of(healthy) / "pages").stat().st_blocks <= 8 * PAGE // 512
        await healthy.sweep(frozenset(), partials_too=True)
        assert names(healthy) == set()
        await healthy.close()
        if at >= len(disk.done):
            break
    assert at > 3


async def test_a_hint_that_lies_costs_room_and_nothing_else(folder: SnapshotFolder) -> None:
    first = pages(10)
    second = changed(first, 1)
    ids = [await save(folder, first), await save(folder, second)]
    await folder.pack(ids[0], None)
    hints = pack_of(folder) / "digests"
    hint = hints.read_bytes()
    hints.write_bytes(hint[16:] + hint[:16])
    await folder.pack(ids[1], None)
    assert await content(folder, ids[0]) == b"".join(first)
    assert await content(folder, ids[1]) == b"".join(second)


# --- damage ------------------------------------------------------------------------------------------------------------------------------


def base_of(pack: Path) -> Path:
    (base,) = pack.glob("base-*")
    return base


def index_of(pack: Path) -> Path:
    (index,) = pack.glob("p" + "?" * 15)
    return index


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "bit in a page": (lambda p: flip(p / "pages", PAGE + 100), "pages.img has changed"),
    "bit in the base": (lambda p: flip(base_of(p), 4 * PAGE), "pages.img has changed"),
    "bit in the index": (lambda p: flip(index_of(p), 40), "index of its packed files does not have its own checksum"),
    "index truncated": (lambda p: os.truncate(index_of(p), 20), "index of its packed files does not have its own checksum"),
    "index empty": (lambda p: os.truncate(index_of(p), 0), "index of its packed files does not have its own checksum"),
    "index missing": (lambda p: index_of(p).unlink(), "pages.img is missing"),
    "index huge": (lambda p: os.truncate(index_of(p), 2**40), "cannot be read"),
    "index is a link": (lambda p: (i := index_of(p)).unlink() or i.symlink_to("/etc/passwd"), "cannot be read"),
    "pages truncated": (lambda p: os.truncate(p / "pages", PAGE), "its pack is truncated"),
    "pages missing": (lambda p: (p / "pages").unlink(), r"cannot be read: No such file or directory \(pages\)"),
    "pages is a pipe": (lambda p: (p / "pages").unlink() or os.mkfifo(p / "pages"), "cannot be read"),
    "base missing": (lambda p: base_of(p).unlink(), r"cannot be read: No such file or directory \(base-"),
    "pack missing": (lambda p: p.rename(p.with_name("elsewhere")), "pages.img is missing"),
    "small file missing": (lambda p: (p.parent / index_of(p).name / "state.img").unlink(), "state.img is missing"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_found_and_named(folder: SnapshotFolder, damage: str) -> None:
    warm = pages(8)
    template = await save(folder, warm, machine=None)
    point = await save(folder, changed(warm, 1, 2))
    await folder.pack(point, template)
    act, message = DAMAGES[damage]
    act(pack_of(folder))
    with pytest.raises(SnapshotDamaged, match=message):
        await content(folder, point)


@pytest.mark.parametrize("harm", [lambda file: flip(file, 5000), lambda file: os.truncate(file, 3 * PAGE)], ids=["flipped bit", "truncated"])
async def test_what_is_damaged_already_is_not_packed(folder: SnapshotFolder, harm: Callable[[Path], object]) -> None:
    memory = pages(8)
    point = await save(folder, memory)
    file = folder.root / point / "pages.img"
    harm(file)
    await folder.pack(point, None)
    assert names(folder) == {point}
    file.write_bytes(b"".join(memory))  # brought back from elsewhere
    await folder.pack(point, None)
    assert await content(folder, point) == b"".join(memory)


async def test_the_pages_of_an_index_that_cannot_be_read_are_left_alone(folder: SnapshotFolder) -> None:
    memory = pages(8)
    hurt, other = await save(folder, memory), await save(folder, pages(8))
    await folder.pack(hurt, None)
    index = pack_of(folder) / hurt
    right = index.read_bytes()
    flip(index, 50)
    await folder.pack(other, None)
    assert slots(folder) == 16
    index.write_bytes(right)
    assert await content(folder, hurt) == b"".join(memory)


async def test_a_packing_that_ended_between_two_files_loses_neither_when_it_is_done_again(tmp_path: Path) -> None:
    memory, state = b"".join(pages(3)), b"".join(pages(2))
    for at in itertools.count():
        folder = make(tmp_path / str(at))
        partial = await folder.begin()
        (partial / "pages.img").write_bytes(memory)
        (partial / "state.img").write_bytes(state)
        id = (await folder.finish(partial, manifest(machine=MACHINE))).snapshot
        await folder.close()
        disk = stopping(at, None)
        dying = make(folder.root, disk)
        with contextlib.suppress(Killed):
            await dying.pack(id, None)
        await dying.close()
        healthy = make(folder.root)
        for _ in range(2):
            await healthy.pack(id, None)
            with healthy.hold(id):
                found, where = await healthy.open(id)
                await healthy.verify_small(found, where)
                await healthy.verify_large(found, where)
                assert ((where / "pages.img").read_bytes(), (where / "state.img").read_bytes()) == (memory, state)
        assert not (folder.root / id / "pages.img").exists()
        assert not (folder.root / id / "state.img").exists()
        await healthy.close()
        if at >= len(disk.done):
            break  # it came to its end
