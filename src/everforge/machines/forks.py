"""New machines from old ones, and points on demand. A fork is a record whose head is its source's snapshot; it wakes when it is first wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everforge.store.base import MachineRecord, PointReason, PointRecord
from everforge.wire.events import START, Moved, Position
from everforge.wire.ids import MachineName, SnapshotId, new_machine_id

from .lifecycle import Residence

if TYPE_CHECKING:
    from .keeper import Keeper
    from .service import Machines


def first_point(record: MachineRecord, snapshot: SnapshotId, reason: PointReason, position: Position, instruction: int | None) -> PointRecord:
    """Point 0: what the machine began as."""
    return PointRecord(snapshot=snapshot, machine=record.id, position=position, instruction=instruction, created_at=record.created_at, reason=reason)


async def snapshot(keeper: Keeper, name: str | None) -> PointRecord:
    """Of a machine in any state that has one; a sleeping machine is a snapshot already, which only gets a name."""
    residency = keeper.residency
    if residency.now is Residence.ASLEEP:
        return await _name_head(keeper, name)
    residency.check_accepting()
    await residency.ensure_awake()
    return await residency.housing.save_point("named", name)


async def _name_head(keeper: Keeper, name: str | None) -> PointRecord:
    record = keeper.dossier.record
    points = await keeper.dossier.store.points(record.id)
    head = next(p for p in reversed(points) if p.snapshot == record.head)
    named = replace(head, reason="named" if head.reason == "idle" else head.reason, name=name or head.name)
    await keeper.dossier.write(add_points=[named], drop_points=[head.snapshot], durable=True, step="name point")
    return named


async def reset(machines: Machines, keeper: Keeper) -> SnapshotId | None:
    record = keeper.dossier.record
    entry = await machines.images.find(record.image)
    template = await machines.templates.ensure(entry, record.disk_mb)
    point = first_point(record, template.snapshot, "template", START, None)
    known = await keeper.dossier.store.points(record.id)
    if all(p.snapshot != template.snapshot for p in known):
        await keeper.dossier.write(add_points=[replace(point, created_at=time.time())], step="add template point")
    return await keeper.residency.reset(point)


async def fork(keeper: Keeper, names: Sequence[MachineName]) -> Sequence[MachineRecord]:
    residency, store = keeper.residency, keeper.dossier.store
    residency.check_accepting()
    if residency.now is Residence.AWAKE:
        point = await residency.housing.save_point("fork")
    else:
        head = keeper.dossier.record.head
        point = next(p for p in reversed(await store.points(keeper.id)) if p.snapshot == head)
    source = keeper.dossier.record
    position = point.position if point.position != START else await store.end_position(source.id)
    records: list[MachineRecord] = []
    for name in names:
        record = _forked(source, name, point, position)
        with keeper.dossier.steps.step("record fork"):
            await store.create(record, points=[first_point(record, point.snapshot, "fork", position, point.instruction)])
        records.append(record)
    told = Moved(event="forked", residence=source.residence, detail={"to": [r.name for r in records], "snapshot": point.snapshot})
    await keeper.dossier.write(events=[told], step="tell of forks")
    return records


def _forked(source: MachineRecord, name: MachineName, point: PointRecord, position: Position) -> MachineRecord:
    now = time.time()
    return replace(
        source,
        id=new_machine_id(),
        name=name,
        created_at=now,
        last_used_at=now,
        residence=str(Residence.ASLEEP),
        sandbox=None,
        epoch=0,  # never went: its first `go` brings entropy of its own
        head=point.snapshot,
        unsaved_from=source.next_instruction,
        error=None,
        failed_wakes=0,
        notice=None,
        source=source.id,
        source_position=position,
    )
