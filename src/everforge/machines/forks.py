"""New machines from old ones. A fork is a record whose head is its source's snapshot; it wakes when it is first wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everforge.store.base import MachineRecord, PointRecord
from everforge.wire.events import START, Accepted, Ended, Event, Moved, Position
from everforge.wire.ids import MachineName, SnapshotId, new_machine_id

from .creation import first_point
from .lifecycle import Residence
from .points import point_of

if TYPE_CHECKING:
    from .forge import Forge
    from .keeper import Keeper


async def reset(forge: Forge, keeper: Keeper) -> SnapshotId | None:
    record = keeper.dossier.record
    entry = await forge.images.find(record.image)
    forge.templates.doubt(forge.templates.id(entry.image.digest, record.disk_mb))  # rare enough to look at it whole
    template = await forge.templates.ensure(entry, record.disk_mb)
    point = first_point(record, template.snapshot, "template", START, None)
    known = await keeper.dossier.store.points(record.id)
    if all(p.snapshot != template.snapshot for p in known):
        await keeper.dossier.write(add_points=[replace(point, created_at=time.time())], step="add template point")
    return await keeper.residency.reset(point)


async def fork(keeper: Keeper, names: Sequence[MachineName]) -> Sequence[MachineRecord]:
    """All of them, or none."""
    residency, store = keeper.residency, keeper.dossier.store
    await residency.check_accepting()
    if residency.now is Residence.AWAKE:
        point = await residency.housing.save_point("fork")
    else:
        point = point_of(await store.points(keeper.id), keeper.dossier.record.head)
    source = keeper.dossier.record
    position = point.position if point.position != START else await store.end_position(source.id)
    records = [_forked(source, name, point, position) for name in names]
    waiting = [e.instruction for e in await store.unended(source.id) if isinstance(e, Accepted) and e.position <= position]
    with keeper.dossier.steps.step("record forks"):
        await store.create_together([(r, _ends(waiting), first_point(r, point.snapshot, "fork", position, point.instruction)) for r in records])
    told = Moved(event="forked", residence=source.residence, detail={"to": [r.name for r in records], "snapshot": point.snapshot})
    await keeper.dossier.write(events=[told], step="tell of forks")
    return records


def _ends(waiting: Sequence[int]) -> list[Event]:
    """What waited for the source is on the fork's tape too, which begins as the source's does; it runs only there."""
    error = "cancelled: it waited when the machine was forked, and runs in the machine that it was meant for"
    return [Ended(instruction=n, end="cancelled", error=error, time=time.time()) for n in waiting]


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
