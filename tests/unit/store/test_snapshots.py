from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everforge.store import manifests
from everforge.store.base import Manifest
from everforge.store.disk import Disk
from everforge.store.snapshots import SnapshotFolder
from everforge.wire.errors import DiskFull, SaveFailed, SnapshotDamaged, SnapshotNotFound
from everforge.wire.ids import MachineId, SnapshotId, new_snapshot_id

SMALL = 1000


def manifest(id: SnapshotId | None = None, **values: Any) -> Manifest:
    defaults: dict[str, Any] = {
        "snapshot": id or new_snapshot_id(),
        "machine": MachineId("m1"),
        "engine": "fake",
        "engine_build": "1",
        "image": "sha256:1",
        "memory_mb": 512,
        "disk_mb": 1024,
        "epoch": 3,
        "sent": 4,
        "received": 5,
        "instruction": 6,
        "created_at": 7.5,
    }
    return Manifest(**(defaults | values))


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[SnapshotFolder]:
    folder = SnapshotFolder(tmp_path / "snapshots", small_bytes=SMALL)
    yield folder
    await folder.close()


async def save(folder: SnapshotFolder) -> Manifest:
    partial = await folder.begin()
    (partial / "state.img").write_bytes(b"state" * 20)
    (partial / "pages.img").write_bytes(b"pages" * 1000)
    (partial / "empty").touch()
    return await folder.finish(partial, manifest())


async def check(folder: SnapshotFolder, id: SnapshotId) -> None:
    found, where = await folder.open(id)
    await folder.verify_small(found, where)
    await folder.verify_large(found, where)


async def test_a_finished_snapshot_is_whole_and_says_what_it_is(folder: SnapshotFolder) -> None:
    saved = await save(folder)
    assert saved.size_bytes == 5100
    found, where = await folder.open(saved.snapshot)
    assert found == saved
    assert (where / "pages.img").read_bytes() == b"pages" * 1000
    await check(folder, saved.snapshot)
    assert [p.name for p in folder.root.iterdir()] == [saved.snapshot]


async def test_an_abandoned_one_leaves_nothing(folder: SnapshotFolder) -> None:
    partial = await folder.begin()
    (partial / "x").touch()
    await folder.abandon(partial)
    await folder.abandon(partial)
    assert list(folder.root.iterdir()) == []


@pytest.mark.parametrize("id", ["../../etc", "p", "", "P" * 16, "p/aaaaaaaaaaaaaa", "m" + "a" * 15])
async def test_what_is_no_id_is_no_snapshot(folder: SnapshotFolder, id: str) -> None:
    await save(folder)
    with pytest.raises(SnapshotNotFound):
        await folder.open(SnapshotId(id))
    with pytest.raises(SnapshotNotFound):
        await folder.delete(SnapshotId(id))
    with pytest.raises(SnapshotNotFound):
        await folder.finish(await folder.begin(), manifest(SnapshotId(id or "p")))


async def test_an_unknown_snapshot_is_not_found(folder: SnapshotFolder) -> None:
    with pytest.raises(SnapshotNotFound):
        await folder.open(new_snapshot_id())


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "bit in a small file": (lambda f: flip(f / "state.img", 50), "state.img has changed"),
    "bit in a large file": (lambda f: flip(f / "pages.img", 4999), "pages.img has changed"),
    "missing": (lambda f: (f / "pages.img").unlink(), "pages.img is missing"),
    "truncated": (lambda f: os.truncate(f / "pages.img", 4096), "pages.img is truncated: 4096 bytes instead of 5000"),
    "too long": (lambda f: os.truncate(f / "empty", 1), "empty is too long"),
    "foreign file": (lambda f: (f / "more").touch(), "more does not belong"),
    "a link instead": (lambda f: ((f / "state.img").unlink(), (f / "state.img").symlink_to("/etc/passwd")), "state.img not a plain file"),
    "a pipe instead": (lambda f: ((f / "empty").unlink(), os.mkfifo(f / "empty")), "empty not a plain file"),
    "a folder inside": (lambda f: (f / "sub").mkdir(), "sub not a plain file"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json is missing"),
    "empty manifest": (lambda f: os.truncate(f / "manifest.json", 0), "manifest"),
    "huge manifest": (lambda f: os.truncate(f / "manifest.json", 2**31), "manifest.json cannot be read"),
    "manifest is a link": (lambda f: (f / "manifest.json").rename(f / "x") and (f / "manifest.json").symlink_to("x"), "manifest.json"),
    "manifest is a pipe": (lambda f: ((f / "manifest.json").unlink(), os.mkfifo(f / "manifest.json")), "manifest.json"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_found_and_named(folder: SnapshotFolder, damage: str) -> None:
    saved = await save(folder)
    act, message = DAMAGES[damage]
    act(folder.root / saved.snapshot)
    with pytest.raises(SnapshotDamaged, match=message):
        await check(folder, saved.snapshot)


async def test_any_flipped_bit_of_the_manifest_is_found(folder: SnapshotFolder) -> None:
    saved = await save(folder)
    path = folder.root / saved.snapshot / "manifest.json"
    original = path.read_bytes()
    for at in range(len(original)):
        for bit in range(8):
            data = bytearray(original)
            data[at] ^= 1 << bit
            try:
                found = manifests.decode(bytes(data), saved.snapshot)
            except SnapshotDamaged:
                continue
            assert found == saved, f"bit {bit} of byte {at}"  # white space, or another spelling of the same JSON


async def test_a_manifest_of_another_snapshot_is_found(folder: SnapshotFolder) -> None:
    one, two = await save(folder), await save(folder)
    (folder.root / one.snapshot / "manifest.json").write_bytes((folder.root / two.snapshot / "manifest.json").read_bytes())
    with pytest.raises(SnapshotDamaged, match=two.snapshot):
        await folder.open(one.snapshot)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=8
)


@given(st.binary() | JSON.map(lambda v: json.dumps(v).encode()))
def test_whatever_is_in_a_manifest_gives_a_manifest_or_damage(data: bytes) -> None:
    with pytest.raises(SnapshotDamaged):
        manifests.decode(data, SnapshotId("p" + "a" * 15))


@given(st.sampled_from([*sorted(manifest().__dataclass_fields__), "format", "extra"]), JSON)
def test_a_manifest_with_a_right_checksum_and_wrong_fields_is_found(name: str, value: object) -> None:
    right = json.loads(manifests.encode(manifest(files={"a": (1, "0" * 64)})))
    id = right["snapshot"]
    body = {key: v for key, v in right.items() if key != "checksum"} | {name: value}
    wrong = body | {"checksum": manifests._checksum(body)}  # pyright: ignore[reportPrivateUsage]
    try:
        found = manifests.decode(json.dumps(wrong).encode(), id)
    except SnapshotDamaged:
        return
    assert getattr(found, name) == value or value != value


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "", ".hidden", "manifest.json", "ü", "a" * 200, "a\x00b", "a\nb"])
def test_names_that_could_climb_are_not_safe(name: str) -> None:
    assert not manifests.safe_file_name(name)


async def test_an_unsafe_name_from_the_engine_is_refused(folder: SnapshotFolder) -> None:
    partial = await folder.begin()
    (partial / ".hidden").touch()
    with pytest.raises(SnapshotDamaged, match="hidden"):
        await folder.finish(partial, manifest())
    assert list(folder.root.iterdir()) == []


async def test_a_finished_snapshot_is_never_replaced(folder: SnapshotFolder) -> None:
    saved = await save(folder)
    partial = await folder.begin()
    with pytest.raises(SaveFailed, match="already"):
        await folder.finish(partial, manifest(saved.snapshot))
    await check(folder, saved.snapshot)


# --- faults ------------------------------------------------------------------------------------------------------------------------


class FaultyDisk(Disk):
    """Fails at one of its operations, counted from 0, and records all of them."""

    def __init__(self, fail_at: int = -1, error: int = errno.ENOSPC) -> None:
        self.fail_at = fail_at
        self.error = error
        self.done: list[str] = []

    def _step(self, what: str) -> None:
        self.done.append(what)
        if len(self.done) - 1 == self.fail_at:
            raise OSError(self.error, os.strerror(self.error))

    def write_file(self, path: Path, data: bytes) -> None:
        self._step(f"write {path.name}")
        super().write_file(path, data)

    def sync(self, path: Path) -> None:
        self._step(f"sync {path.name}")
        super().sync(path)

    def rename(self, old: Path, new: Path) -> None:
        self._step("rename")
        super().rename(old, new)


async def test_contents_are_synced_before_the_name_and_the_name_before_it_is_told(tmp_path: Path) -> None:
    disk = FaultyDisk()
    folder = SnapshotFolder(tmp_path / "snapshots", disk=disk)
    await save(folder)
    assert sorted(disk.done[:3]) == ["sync empty", "sync pages.img", "sync state.img"]
    assert disk.done[3] == "write manifest.json"
    assert disk.done[4].startswith("sync .partial-")
    assert disk.done[5:] == ["rename", "sync snapshots"]
    await folder.close()


@pytest.mark.parametrize(("error", "raised"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, SaveFailed)])
async def test_a_fault_at_any_step_leaves_no_partial_and_what_is_visible_is_whole(tmp_path: Path, error: int, raised: type[Exception]) -> None:
    for step in range(7):
        folder = SnapshotFolder(tmp_path / f"{error}-{step}", disk=FaultyDisk(step, error))
        with pytest.raises(raised):
            await save(folder)
        left = [path.name for path in folder.root.iterdir()]
        assert not [name for name in left if name.startswith(".")]
        healthy = SnapshotFolder(folder.root)
        for name in left:
            await check(healthy, SnapshotId(name))
        await save(healthy)
        await folder.close()
        await healthy.close()


async def test_a_cancelled_finish_comes_to_its_end_first(tmp_path: Path) -> None:
    began, go = threading.Event(), threading.Event()

    class SlowDisk(Disk):
        def rename(self, old: Path, new: Path) -> None:
            began.set()
            assert go.wait(10)
            super().rename(old, new)

    folder = SnapshotFolder(tmp_path, disk=SlowDisk())
    saving = asyncio.ensure_future(save(folder))
    await asyncio.to_thread(began.wait, 10)
    saving.cancel()
    await asyncio.sleep(0)
    assert not saving.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    (left,) = tmp_path.iterdir()
    await check(folder, SnapshotId(left.name))
    await folder.close()


# --- removing ----------------------------------------------------------------------------------------------------------------------


async def test_delete_removes_it_and_twice_is_fine(folder: SnapshotFolder) -> None:
    saved = await save(folder)
    await folder.delete(saved.snapshot)
    await folder.delete(saved.snapshot)
    assert list(folder.root.iterdir()) == []
    with pytest.raises(SnapshotNotFound):
        await folder.open(saved.snapshot)


async def test_a_delete_that_is_cut_short_leaves_nothing_under_its_name_and_the_sweep_ends_it(tmp_path: Path) -> None:
    class NoRemove(Disk):
        def remove_tree(self, folder: Path) -> None:
            raise OSError(errno.EIO, "cut short")

    folder = SnapshotFolder(tmp_path, disk=NoRemove())
    saved = await save(folder)
    await folder.delete(saved.snapshot)
    with pytest.raises(SnapshotNotFound):
        await folder.open(saved.snapshot)
    await folder.close()
    folder = SnapshotFolder(tmp_path)
    assert await folder.sweep(frozenset(), partials_too=False) == 1
    assert list(tmp_path.iterdir()) == []
    await folder.close()


async def test_a_sweep_keeps_what_is_referenced_and_partials_unless_told(folder: SnapshotFolder) -> None:
    assert await folder.sweep(frozenset(), partials_too=True) == 0
    kept, loose = await save(folder), await save(folder)
    partial = await folder.begin()
    (folder.root / "something-else").touch()
    assert await folder.sweep(frozenset({kept.snapshot}), partials_too=False) == 1
    assert partial.exists()
    assert await folder.sweep(frozenset({kept.snapshot}), partials_too=True) == 1
    assert sorted(p.name for p in folder.root.iterdir()) == sorted([kept.snapshot, "something-else"])
    await check(folder, kept.snapshot)
    with pytest.raises(SnapshotNotFound):
        await folder.open(loose.snapshot)


async def test_only_its_own_partial_folders_are_touched(folder: SnapshotFolder, tmp_path: Path) -> None:
    precious = tmp_path / ".partial-precious"
    precious.mkdir()
    with pytest.raises(ValueError, match="precious"):
        await folder.abandon(precious)
    with pytest.raises(ValueError, match="precious"):
        await folder.finish(precious, manifest())
    assert precious.is_dir()
