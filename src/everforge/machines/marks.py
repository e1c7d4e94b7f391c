"""Points on demand: taken and named, and let go again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everforge.store.base import PointRecord
from everforge.wire.errors import NameTaken, Refused

from .lifecycle import Residence
from .points import Target, check_new_name, find, point_of

if TYPE_CHECKING:
    from .keeper import Keeper


async def snapshot(keeper: Keeper, name: str | None, named_max: int) -> PointRecord:
    """Of a machine in any state that has one; a sleeping machine is a snapshot already, which only gets a name."""
    residency, dossier = keeper.residency, keeper.dossier
    if name is not None:
        check_new_name(await dossier.store.points(keeper.id), name, named_max)
    if residency.now is Residence.ASLEEP:
        return await _name_head(keeper, name)
    await residency.check_accepting()
    await residency.ensure_awake()
    return await residency.housing.save_point("named", name)


async def _name_head(keeper: Keeper, name: str | None) -> PointRecord:
    head = point_of(await keeper.dossier.store.points(keeper.id), keeper.dossier.record.head)
    if name is None:
        return head
    if head.name is not None:
        raise NameTaken(f"machine {keeper.dossier.record.name} has not changed since its snapshot {head.name!r}, and a snapshot has one name")
    named = replace(head, reason="named" if head.reason == "idle" else head.reason, name=name)
    await keeper.dossier.write(add_points=[named], drop_points=[head.snapshot], durable=True, step="name point")
    return named


async def forget(keeper: Keeper, snapshot: str) -> None:
    """Let a point go. The one that the machine itself needs only loses its name."""
    record = keeper.dossier.record
    point = find(await keeper.dossier.store.points(record.id), Target(snapshot=snapshot))
    if point.snapshot != record.head and point.reason != "template":
        await keeper.residency.housing.saver.drop(point.snapshot)
    elif point.name is None:
        raise Refused(f"snapshot {point.snapshot} is what machine {record.name} starts from, and cannot be forgotten")
    else:
        bare = replace(point, name=None, reason="idle" if point.reason == "named" else point.reason)
        await keeper.dossier.write(add_points=[bare], drop_points=[point.snapshot], durable=True, step="unname point")
