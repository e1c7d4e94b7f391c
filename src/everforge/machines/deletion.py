"""The end of a machine, from any residence. Repeatable: recovery calls it again for a machine found half deleted.

Its tape stays for a while, for readers that have not come to its end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from everforge.store.base import MachineRecord
from everforge.wire.events import Accepted, Ended

from .dossier import Dossier
from .lifecycle import Arrow, Residence

if TYPE_CHECKING:
    from .service import Machines


async def delete(machines: Machines, record: MachineRecord) -> None:
    keeper = machines.keepers.get(record.id)
    sandbox = None
    if keeper is not None:
        machines.keepers.remove(keeper)
        # Stopping a keeper anywhere is as a crash there would be: every step is safe to be cut off at.
        await keeper.stop()
        if incarnation := keeper.residency.housing.incarnation:
            sandbox = incarnation.sandbox
    current = await machines.store.machine(record.id)
    if current is None or current.deleted_at is not None:
        return
    dossier = Dossier(current, machines.store, machines.readers, machines.steps)
    if dossier.residence is not Residence.DELETING:
        unended = [e.instruction for e in await machines.store.unended(record.id) if isinstance(e, Accepted)]
        ends = [Ended(instruction=n, end="cancelled", error="cancelled: the machine was deleted") for n in unended]
        await dossier.write(Arrow.DELETE_ASKED, events=ends, durable=True)
    if sandbox is not None:
        with machines.steps.step("destroy"):
            await sandbox.destroy()
    machines.admission.release(record.id)
    snapshots = [p.snapshot for p in await machines.store.points(record.id)]
    await dossier.write(Arrow.REMOVED, set={"sandbox": None, "head": None, "deleted_at": time.time()}, drop_points=snapshots)
    for snapshot in snapshots:
        if not await machines.store.snapshot_in_use(snapshot) and snapshot not in machines.templates.in_use:
            await machines.snapshots.delete(snapshot)
    machines.readers.end(record.id)
    await machines.store.purge_deleted(time.time() - machines.settings.deleted_kept_seconds)
