"""A manifest that was changed together with its checksum: what the record knows better is found before anything runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from everforge.store import manifests
from everforge.wire.errors import MachineBroken, MachineFailed, SnapshotDamaged, SnapshotForeign
from everforge.wire.ids import SnapshotId
from kit.house import House, NewMachine


async def sleeping(house: House) -> tuple[str, str]:
    """A machine that sleeps in a snapshot, with a good point before it, and that snapshot."""
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "x = 'good'")
    await house.machines.snapshot(name, "good")
    await house.machines.run(name, "x = 'head'")
    await house.machines.hibernate(name)
    return name, str((await house.machines.get(name)).record.head)


def forge(house: House, snapshot: str, **fields: Any) -> None:
    place = house.folder / snapshot / manifests.NAME
    manifest = manifests.decode(place.read_bytes(), SnapshotId(snapshot))
    assert all(getattr(manifest, field) != value for field, value in fields.items()), "nothing is changed"
    place.unlink()
    place.write_bytes(manifests.encode(replace(manifest, **fields)))


FORGED = [
    {"machine": "m" + "a" * 15},
    {"machine": None},
    {"instruction": 0},
    {"instruction": 7},
    {"instruction": None},
    {"memory_mb": 128},
    {"disk_mb": 64},
    {"epoch": 9},
    {"sent": 999},
    {"received": 999},
    {"image": "another"},
    {"engine": "another"},
    {"engine_build": "another"},
]


@pytest.mark.parametrize("fields", FORGED, ids=lambda fields: "-".join(f"{k}={v}" for k, v in fields.items()))
async def test_a_forged_manifest_is_found_before_anything_runs(house: House, fields: dict[str, Any]) -> None:
    name, head = await sleeping(house)
    forge(house, head, **fields)
    house.life.steps.clear()
    ended = await house.machines.run(name, "x")
    view = await house.machines.get(name)
    assert (ended.end, view.state) == ("lost", "broken"), ended
    assert "before go" not in house.life.steps
    assert "(good, after instruction 0)" in (view.record.error or "")
    assert not house.host.sandboxes
    with pytest.raises(MachineBroken):
        await house.machines.exec(name, "x")
    with pytest.raises((SnapshotForeign, SnapshotDamaged)):
        await house.machines.rollback(name, snapshot=head)
    await house.machines.rollback(name, snapshot="good")
    assert (await house.machines.run(name, "x")).value == "'good'"


@pytest.mark.parametrize("fields", [{"machine": "m" + "a" * 15}, {"disk_mb": 64}, {"instruction": 7}], ids=str)
async def test_a_forged_point_is_not_rolled_back_to(house: House, fields: dict[str, Any]) -> None:
    name, _ = await sleeping(house)
    good = next(p.snapshot for p in await house.machines.points(name) if p.name == "good")
    forge(house, good, **fields)
    with pytest.raises(MachineFailed):
        await house.machines.rollback(name, snapshot="good")
    assert (await house.machines.run(name, "x")).value == "'head'"


async def test_snapshots_that_belong_to_others_by_right_are_not_taken_for_forged(house: House) -> None:
    """A new machine's is its image's template, made with other limits; a fork's is its source's; a fork of a fork's is its grandsource's."""
    name, head = await sleeping(house)
    await house.machines.fork(name, names=["fork"])
    await house.machines.fork("fork", names=["fork-of-fork"])
    for fork in ("fork-of-fork", "fork"):
        assert (await house.machines.run(fork, "x")).value == "'head'"
        await house.machines.run(fork, "x = 'own'")
        await house.machines.hibernate(fork)
        assert (await house.machines.run(fork, "x")).value == "'own'"
        await house.machines.rollback(fork, snapshot=head)
        assert (await house.machines.run(fork, "x")).value == "'head'"
    await house.machines.reset(name)
    assert "NameError" in ((await house.machines.run(name, "x")).error or "")
    await house.machines.rollback(name, snapshot=head)
    assert (await house.machines.run(name, "x")).value == "'head'"
    other = (await house.machines.create(NewMachine(memory_mb=256, disk_mb=128))).record.name
    await house.machines.run(other, "x = 1")
    await house.machines.hibernate(other)
    assert (await house.machines.run(other, "x")).value == "1"
