"""New machines from old ones. A fork is a record whose head is its source's snapshot; it wakes when it is first wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everforge.store.base import MachineRecord, PointRecord, Store
from everforge.wire.errors import InvalidInput
from everforge.wire.events import START, Accepted, Ended, Event, Moved, Position
from everforge.wire.ids import AccountId, MachineId, MachineName, SnapshotId, new_machine_id

from . import requests
from .creation import check_memory, check_room, describe, first_point, new_record
from .keys import Key
from .lifecycle import Residence
from .points import Target, find, point_of
from .requests import NewMachine

if TYPE_CHECKING:
    from .forge import Forge
    from .keeper import Keeper

PAGE = 500


async def reset(forge: Forge, keeper: Keeper, *, discard: bool) -> SnapshotId | None:
    return await keeper.residency.with_room(lambda: _reset(forge, keeper, discard=discard), discard=discard)


async def _reset(forge: Forge, keeper: Keeper, *, discard: bool) -> SnapshotId | None:
    record = keeper.dossier.record
    entry = await forge.images.find(record.image)
    forge.templates.doubt(forge.templates.id(entry.image.digest, record.disk_mb))  # rare enough to look at it whole
    template = await forge.templates.ensure(entry, record.disk_mb)
    point = first_point(record, template.snapshot, "template", START, None)
    known = await keeper.dossier.store.points(record.id)
    if all(p.snapshot != template.snapshot for p in known):
        await keeper.dossier.write(add_points=[replace(point, created_at=time.time())], step="add template point", patient=False)
    return await keeper.residency.reset(point, discard=discard)


async def fork(forge: Forge, keeper: Keeper, names: Sequence[MachineName], key: Key) -> Sequence[MachineRecord]:
    """All of them, or none."""
    residency, store = keeper.residency, keeper.dossier.store
    quota = await forge.quota(keeper.dossier.record.account)
    await check_room(store, quota, keeper.dossier.record.account, len(names))  # before the source is saved for nothing
    await residency.check_accepting()
    if residency.now is Residence.AWAKE:
        point = await residency.housing.save_point("fork")
    else:
        point = point_of(await store.points(keeper.id), keeper.dossier.record.head)
    source = keeper.dossier.record
    position = point.position if point.position != START else await store.end_position(source.id)
    records = [_forked(source, name, point, position) for name in names]
    waiting = await _waiting_at(store, source.id, replace(point, position=position))  # not what waits now: the point may be older
    with keeper.dossier.steps.step("record forks"):
        machines = [(r, _ends(waiting), first_point(r, point.snapshot, "fork", position, point.instruction)) for r in records]
        await store.create_together(machines, key([r.id for r in records]), quota)
    await _tell(keeper, records, point)
    return records


async def create_from(forge: Forge, wanted: NewMachine, account: AccountId, key: str | None) -> MachineRecord:
    """A new machine that goes on from a kept point of another; as a fork it is asleep until it is wanted."""
    origin = requests.snapshot_of(wanted.from_snapshot)
    for field in ("image", "disk_mb", "env"):
        if getattr(wanted, field) is not None:
            raise InvalidInput(f"{field} is what a machine begins with, and this one goes on from a snapshot: leave it out")
    record = await new_record(wanted, account, forge)
    check_memory(forge, record)

    async def make(key: Key) -> Sequence[MachineRecord]:
        keeper = await forge.keeper(account, origin.machine)
        return [await keeper.operate("fork", lambda: _begin_from(forge, keeper, origin.snapshot, wanted, record, key))]

    made, _ = await forge.keys.once(account, "create", key, describe(wanted, record), make)
    return made[0]


async def _begin_from(forge: Forge, keeper: Keeper, snapshot: str, wanted: NewMachine, record: MachineRecord, key: Key) -> MachineRecord:
    """In its place among the source's operations, so that the point cannot be dropped meanwhile."""
    store, source = keeper.dossier.store, keeper.dossier.record
    point = find(await store.points(source.id), Target(snapshot=snapshot))
    limits = {name: getattr(source, name) for name in ("memory_mb", "cpus", "processes") if getattr(wanted, name) is None}
    record = replace(
        _forked(source, record.name, point, point.position),
        **{name: getattr(record, name) for name in ("memory_mb", "cpus", "processes", "idle_seconds", "history", "durability")} | limits,
        id=record.id,
        tags=record.tags,
        metadata=record.metadata,
        expires_at=record.expires_at,
        egress=source.egress if wanted.egress is None and wanted.egress_allow is None else record.egress,
    )
    waiting = await _waiting_at(store, source.id, point)
    reason = "template" if point.reason == "template" else "fork"
    with keeper.dossier.steps.step("record forks"):
        first = first_point(record, point.snapshot, reason, point.position, point.instruction)
        await store.create_together([(record, _ends(waiting), first)], key([record.id]), await forge.quota(record.account))
    if record.expires_at is not None:
        forge.expiry.look_again()
    await _tell(keeper, [record], point)
    return record


async def _waiting_at(store: Store, source: MachineId, point: PointRecord) -> Sequence[int]:
    """What was accepted and had not ended where the point was taken: on the new tape it would never end."""
    waiting: list[int] = []
    after = -1 if point.instruction is None else point.instruction
    more = True
    while more:
        page, more = await store.instructions(source, after, PAGE)
        for accepted, ended in page:
            assert isinstance(accepted, Accepted)
            if accepted.position > point.position:
                return waiting
            if ended is None or ended.position > point.position:
                waiting.append(accepted.instruction)
            after = accepted.instruction
    return waiting


async def _tell(keeper: Keeper, forks: Sequence[MachineRecord], point: PointRecord) -> None:
    told = Moved(event="forked", residence=keeper.dossier.record.residence, detail={"to": [r.name for r in forks], "snapshot": point.snapshot})
    for fork in forks:
        keeper.dossier.signals.tell("machine.created", account=fork.account, machine=fork.name, source=keeper.dossier.record.name)
    await keeper.dossier.write(events=[told], step="tell of forks")


def _ends(waiting: Sequence[int]) -> list[Event]:
    """What waited for the source is on the fork's tape too, which begins as the source's does; it runs only there."""
    error = "cancelled: it had not ended when the machine was forked, and runs in the machine that it was meant for"
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
        awake_since=None,
        epoch=0,  # never went: its first `go` brings entropy of its own
        head=point.snapshot,
        unsaved_from=source.next_instruction,
        error=None,
        failed_wakes=0,
        notice=None,
        expires_at=None,  # nobody asked for the end of this one
        source=source.id,
        source_position=position,
    )
