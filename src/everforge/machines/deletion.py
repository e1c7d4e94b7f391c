"""The end of a machine, from any residence. Repeatable: recovery calls it again for a machine found half deleted.

Its tape stays for a while, for readers that have not come to its end.

On a full disk not even this can be recorded, and what the machine has written may be what fills it: then its sandbox goes first. A server that dies
before the record finds the machine lost, and back at its last snapshot, as nobody was told that it is deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everforge.engine.base import Sandbox
from everforge.store.base import MachineRecord
from everforge.wire.errors import DiskFull, EverforgeError, MachineNotFound, WrongState
from everforge.wire.events import Accepted, Ended, Event
from everforge.wire.ids import SnapshotId

from .dossier import ROOM_SECONDS, Dossier
from .lifecycle import Arrow, Residence

if TYPE_CHECKING:
    from .forge import Forge
    from .keeper import Keeper

log = logging.getLogger(__name__)
TRIES = 5  # to name what has no end, while the last writes of its keeper come in


async def delete(forge: Forge, record: MachineRecord) -> None:
    keeper = forge.keepers.get(record.id)
    sandbox: Sandbox | None = None
    if keeper is not None:
        forge.keepers.remove(keeper)
        # Stopping a keeper anywhere is as a crash there would be: every step is safe to be cut off at.
        await keeper.stop()
        if incarnation := keeper.residency.housing.incarnation:
            sandbox = incarnation.sandbox
    try:
        await _delete(forge, record, keeper, sandbox)
    finally:
        if keeper is not None:
            keeper.give_up(MachineNotFound(f"machine {record.name} was deleted"))


async def _delete(forge: Forge, record: MachineRecord, keeper: Keeper | None, sandbox: Sandbox | None) -> None:
    current = await forge.store.machine(record.id)
    if current is None or current.deleted_at is not None:
        return
    if sandbox is None and current.sandbox is not None:
        sandbox = (await forge.engine.survivors()).get(current.sandbox)
    dossier = Dossier(current, forge.store, forge.readers, forge.steps, forge.signals)
    if dossier.residence is not Residence.DELETING:
        try:
            events = await _ask(forge, dossier, 0.0)
        except DiskFull:
            await _destroy(forge, sandbox)
            events = await _ask(forge, dossier, ROOM_SECONDS)
        for event in events:
            if keeper is not None and isinstance(event, Ended):
                keeper.tell(event)
    await _destroy(forge, sandbox)
    await forge.undertaker.clear(record.id)
    for partial in keeper.residency.housing.saver.partials if keeper is not None else ():
        await forge.snapshots.abandon(partial)  # again: its sandbox may have gone on writing until now
    forge.admission.release(record.id)
    snapshots = [p.snapshot for p in await forge.store.points(record.id)]
    if keeper is not None:
        snapshots += keeper.residency.housing.saver.loose
    await dossier.write(Arrow.REMOVED, set={"sandbox": None, "head": None, "deleted_at": time.time()}, drop_points=snapshots)
    forge.readers.end(record.id)
    try:
        await _clear_away(forge, snapshots)
    except EverforgeError as e:  # it is deleted all the same, and the next server sweeps
        log.warning("machine %s is deleted, and not all of its files could be removed yet: %s", record.name, e.message)


async def _destroy(forge: Forge, sandbox: Sandbox | None) -> None:
    if sandbox is not None:
        with forge.steps.step("destroy"):
            await sandbox.destroy()


async def _clear_away(forge: Forge, snapshots: Sequence[SnapshotId]) -> None:
    for snapshot in snapshots:
        if not await forge.store.snapshot_in_use(snapshot) and snapshot not in forge.templates.in_use:
            await forge.snapshots.delete(snapshot)
    await forge.store.purge_deleted(time.time() - forge.settings.deleted_kept_seconds)


async def _ask(forge: Forge, dossier: Dossier, room_seconds: float) -> Sequence[Event]:
    """Write that it is to go, with an end for everything that has none; a write that the keeper had begun may give one of them its end meanwhile.
    Raises DiskFull when there is no room for so long."""
    for tries_left in reversed(range(TRIES)):
        unended = [e.instruction for e in await forge.store.unended(dossier.record.id) if isinstance(e, Accepted)]
        ends = [Ended(instruction=n, end="cancelled", error="cancelled: the machine was deleted") for n in unended]
        try:
            return await dossier.write(Arrow.DELETE_ASKED, events=ends, durable=True, room_seconds=room_seconds)
        except WrongState:
            if not tries_left:
                raise
    return ()
