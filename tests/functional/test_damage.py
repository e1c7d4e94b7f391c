"""Must show 6: whatever is wrong with a snapshot is found before anything runs, said clearly, and the previous point is offered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.store import manifests
from everforge.wire.ids import SnapshotId
from kit.real import sandboxes_of

pytestmark = pytest.mark.gvisor


def flip_a_bit(file: Path) -> None:
    with open(file, "r+b") as f:
        f.seek(file.stat().st_size // 2)
        (byte,) = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 1]))


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


async def broken_machine(machines: Machines, data: Path) -> tuple[str, Path]:
    """A sleeping machine with a good point before its head, and the head's folder."""
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "x = 'good'")
    await machines.snapshot(name, "good")
    await machines.run(name, "x = 'head'; open('ran.txt', 'a').write('!')")
    await machines.hibernate(name)
    return name, data / "snapshots" / str((await machines.get(name)).record.head)


async def check_found(machines: Machines, data: Path, name: str, *words: str) -> None:
    ended = await machines.run(name, "x")
    assert ended.end == "lost", ended
    view = await machines.get(name)
    assert view.state == "broken"
    for word in words:
        assert word in (view.record.error or ""), view.record.error
    assert "good" in (view.record.error or ""), "the previous point is not offered"
    await machines.rollback(name, snapshot="good")
    assert (await machines.run(name, "x")).value == "'good'"
    assert sandboxes_of(data)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [flip_a_bit, truncate, Path.unlink], ids=["flipped bit", "truncated", "missing"])
async def test_a_harmed_file_of_a_snapshot_is_found(machines: Machines, data: Path, harm: Callable[[Path], None]) -> None:
    name, folder = await broken_machine(machines, data)
    files = sorted(p.name for p in folder.iterdir())
    assert len(files) >= 3
    for file in files:
        kept = {p.name: p.read_bytes() for p in folder.iterdir()}
        harm(folder / file)
        await check_found(machines, data, name, file.removesuffix(".json"))
        for known, content in kept.items():
            if not (folder / known).exists() or (folder / known).read_bytes() != content:
                (folder / known).unlink(missing_ok=True)
                (folder / known).write_bytes(content)
        await machines.rollback(name, snapshot=folder.name)
        assert (await machines.run(name, "x")).value == "'head'"
        await machines.rollback(name, snapshot="good")
        await machines.rollback(name, snapshot=folder.name)
        await machines.hibernate(name)
        folder = data / "snapshots" / str((await machines.get(name)).record.head)


@pytest.mark.parametrize("field", ["engine_build", "image"])
async def test_a_snapshot_of_another_engine_build_or_image_is_found(machines: Machines, data: Path, field: str) -> None:
    name, folder = await broken_machine(machines, data)
    place = folder / "manifest.json"
    manifest = manifests.decode(place.read_bytes(), SnapshotId(folder.name))
    place.unlink()
    place.write_bytes(manifests.encode(replace(manifest, **{field: "f" * 64})))
    await check_found(machines, data, name, field.replace("_", " "))


async def test_a_manifest_that_is_not_one_is_found(machines: Machines, data: Path) -> None:
    name, folder = await broken_machine(machines, data)
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").write_text(json.dumps({"files": {"../../etc/passwd": [1, "x"]}}))
    await check_found(machines, data, name, "manifest")
