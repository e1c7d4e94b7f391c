"""The end of a machine, from any residence. Repeatable: recovery calls it again for a machine found half deleted.

Its tape stays for a while, for readers that have not come to its end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everforge.engine.base import Sandbox
from everforge.store.base import MachineRecord
from everforge.wire.errors import MachineNotFound, WrongState
from everforge.wire.events import Accepted, Ended, Event

from .dossier import Dossier
from .lifecycle import Arrow, Residence

if TYPE_CHECKING:
    from .keeper import Keeper
    from .service import Machines


TRIES = 5  # to name what has no end, while the last writes of its keeper come in


async def delete(machines: Machines, record: MachineRecord) -> None:
    keeper = machines.keepers.get(record.id)
    sandbox: Sandbox | None = None
    if keeper is not None:
        machines.keepers.remove(keeper)
        # Stopping a keeper anywhere is as a crash there would be: every step is safe to be cut off at.
        await keeper.stop()
        if incarnation := keeper.residency.housing.incarnation:
            sandbox = incarnation.sandbox
    try:
        await _delete(machines, record, keeper, sandbox)
    finally:
        if keeper is not None:
            keeper.give_up(MachineNotFound(f"machine {record.name} was deleted"))


async def _delete(machines: Machines, record: MachineRecord, keeper: Keeper | None, sandbox: Sandbox | None) -> None:
    current = await machines.store.machine(record.id)
    if current is None or current.deleted_at is not None:
        return
    if sandbox is None and current.sandbox is not None:
        sandbox = (await machines.engine.survivors()).get(current.sandbox)
    dossier = Dossier(current, machines.store, machines.readers, machines.steps)
    if dossier.residence is not Residence.DELETING:
        for event in await _ask(machines, dossier):
            if keeper is not None and isinstance(event, Ended):
                keeper.tell(event)
    if sandbox is not None:
        with machines.steps.step("destroy"):
            await sandbox.destroy()
    for partial in keeper.residency.housing.saver.partials if keeper is not None else ():
        await machines.snapshots.abandon(partial)  # again: its sandbox may have gone on writing until now
    machines.admission.release(record.id)
    snapshots = [p.snapshot for p in await machines.store.points(record.id)]
    if keeper is not None:
        snapshots += keeper.residency.housing.saver.loose
    await dossier.write(Arrow.REMOVED, set={"sandbox": None, "head": None, "deleted_at": time.time()}, drop_points=snapshots)
    for snapshot in snapshots:
        if not await machines.store.snapshot_in_use(snapshot) and snapshot not in machines.templates.in_use:
            await machines.snapshots.delete(snapshot)
    machines.readers.end(record.id)
    await machines.store.purge_deleted(time.time() - machines.settings.deleted_kept_seconds)


async def _ask(machines: Machines, dossier: Dossier) -> Sequence[Event]:
    """Write that it is to go, with an end for everything that has none; a write that the keeper had begun may give one of them its end meanwhile."""
    for tries_left in reversed(range(TRIES)):
        unended = [e.instruction for e in await machines.store.unended(dossier.record.id) if isinstance(e, Accepted)]
        ends = [Ended(instruction=n, end="cancelled", error="cancelled: the machine was deleted") for n in unended]
        try:
            return await dossier.write(Arrow.DELETE_ASKED, events=ends, durable=True)
        except WrongState:
            if not tries_left:
                raise
    return ()
