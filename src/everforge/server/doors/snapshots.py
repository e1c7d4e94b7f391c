"""Snapshots: points that a machine can go back to."""

from __future__ import annotations

from everforge.wire import api
from everforge.wire.errors import MachineBroken, MachineNotFound, NameTaken, NoCapacity, PointNotKept, QuotaExceeded, SnapshotNotFound

from .. import views
from ..calls import Call
from ..routes import Routes
from .machines import IN_TURN

routes = Routes("snapshots")


@routes.add("GET", "/v1/machine/{name}/snapshots", scope="read", errors=(MachineNotFound,))
async def list_snapshots(call: Call) -> api.SnapshotList:
    """What the machine can be rolled back to, oldest first."""
    return api.SnapshotList(snapshots=[views.snapshot(point) for point in await call.machines.points(call.name)])


@routes.add(
    "POST",
    "/v1/machine/{name}/snapshots",
    action="snapshot.take",
    scope="manage",
    errors=(*IN_TURN, MachineBroken, NameTaken, NoCapacity, QuotaExceeded),
    example={"name": "before"},
)
async def take(call: Call, body: api.NewSnapshot | None = None) -> api.Snapshot:
    """Take a snapshot. A named one is kept until it is deleted."""
    return views.snapshot(await call.machines.snapshot(call.name, body.name if body else None))


@routes.add("DELETE", "/v1/machine/{name}/snapshots/{snapshot}", action="snapshot.delete", scope="manage", errors=(*IN_TURN, SnapshotNotFound))
async def forget(call: Call) -> api.Deleted:
    """Let a snapshot go, by id or name."""
    await call.machines.forget(call.name, call.path("snapshot"))
    return api.Deleted(deleted=True)


@routes.add(
    "POST", "/v1/machine/{name}/rollback", action="machine.rollback", scope="manage",
    errors=(*IN_TURN, SnapshotNotFound, PointNotKept, NoCapacity, QuotaExceeded), example={"to": "before"},
)  # fmt: skip
async def roll_back(call: Call, body: api.Rollback | None = None) -> api.RolledBack:
    """Back to a snapshot (id or name), to the state after an instruction (its number), or to the newest snapshot.

    With `discard` nothing is saved first: for a machine that cannot be saved.
    """
    to = body.to if body else None
    done = await call.machines.rollback(
        call.name,
        snapshot=to if isinstance(to, str) else None,
        instruction=to if isinstance(to, int) else None,
        discard=bool(body and body.discard),
    )
    return api.RolledBack(snapshot=views.snapshot(done.point), undo=done.undo)
