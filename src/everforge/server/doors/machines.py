"""Machines: create, list, look at, change, fork, put to sleep, wake, delete. ForeverVM's routes, and ours beside them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from everforge.machines.doors import PolicyChange
from everforge.machines.requests import NewMachine, SnapshotOf
from everforge.machines.service import Machines, MachineView
from everforge.store.base import MachineQuery
from everforge.wire import api
from everforge.wire.errors import (
    DiskFull,
    ImageNotFound,
    InvalidInput,
    KeyReused,
    MachineBroken,
    MachineFailed,
    MachineNotFound,
    NameTaken,
    NoCapacity,
    QueueFull,
    QuotaExceeded,
    Refused,
    SnapshotNotFound,
    WrongState,
)
from everforge.wire.ids import MachineId

from ..calls import Call
from ..routes import Routes
from ..times import from_wire
from ..views import listed_machine, machine_fields

routes = Routes("machines")
# What takes its turn behind instructions: there may be too many, what comes before may cancel it, and the machine may not be able to.
IN_TURN = (MachineNotFound, QueueFull, Refused, MachineFailed, DiskFull)
BATCH = 100  # looked at together, for those of one state
LOOKED_AT_MAX = 2_000  # for one page: what takes longer goes on with the next
RESIDENCES = {"ready": {"awake", "saving"}, "busy": {"awake", "saving"}}


@routes.add(
    "POST", "/v1/machine/new", action="machine.create", scope="manage", keyed=True,
    errors=(NameTaken, ImageNotFound, KeyReused, NoCapacity, QuotaExceeded, MachineNotFound, SnapshotNotFound, MachineFailed, DiskFull),
    example={"tags": {"project": "demo"}, "memory_mb": 1024},
)  # fmt: skip
async def create(call: Call, body: api.NewMachine | None = None) -> api.MachineCreated:
    """Create a machine. Answers as soon as it is recorded; it is started behind the answer, and takes instructions at once."""
    wanted = body or api.NewMachine()
    view = await call.machines.create(new_machine(wanted), key=call.key)
    call.notes.update(_egress(wanted))
    return api.MachineCreated(machine_name=view.record.name)


def new_machine(body: api.NewMachine) -> NewMachine:
    return NewMachine(
        name=body.name, image=body.image, memory_mb=body.memory_mb, cpus=body.cpus, disk_mb=body.disk_mb, processes=body.processes,
        idle_seconds=body.idle_seconds, history=body.history or "idle", durability=body.durability or "idle", tags=body.tags, metadata=body.metadata,
        env=body.env, egress=body.egress, egress_allow=body.egress_allow,
        expires_at=None if body.expires_at is None else from_wire("expires_at", body.expires_at),
        from_snapshot=None if body.from_snapshot is None else SnapshotOf(body.from_snapshot.machine, body.from_snapshot.snapshot),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesQuery(api.Query):
    tag: list[str] = field(default_factory=list[str])  # key=value, repeated
    state: api.State | None = None
    name_prefix: str = ""
    limit: int | None = None
    after: str | None = None


@routes.add("GET", "/v1/machine/list", scope="read")
async def list_machines(call: Call, query: MachinesQuery) -> api.MachineList:
    """The account's machines, newest first."""
    if wrong := [tag for tag in query.tag if "=" not in tag]:
        raise InvalidInput(f"a tag is given as key=value, not as {wrong[0][:80]!r}")
    tags = dict(tag.split("=", 1) for tag in query.tag)
    return await _list(call, api.ListMachines(tags=tags, state=query.state, name_prefix=query.name_prefix, limit=query.limit, after=query.after))


@routes.add("POST", "/v1/machine/list", action=None, scope="read", example={"tags": {"project": "demo"}})
async def list_matching(call: Call, body: api.ListMachines | None = None) -> api.MachineList:
    """The same, asked for in a body, as ForeverVM's clients do."""
    return await _list(call, body or api.ListMachines())


async def _list(call: Call, wanted: api.ListMachines) -> api.MachineList:
    page = call.service.settings.list_machines_max
    limit = page if wanted.limit is None else wanted.limit
    if not 1 <= limit <= page:
        raise InvalidInput(f"limit must be from 1 to {page} machines")
    residences = frozenset(RESIDENCES.get(wanted.state, {wanted.state})) if wanted.state else frozenset[str]()
    query = MachineQuery(tags=wanted.tags or {}, name_prefix=wanted.name_prefix or "", residences=residences, before=_cursor(wanted.after))
    shown, next = await _page(call.machines, query, wanted.state, limit)
    return api.MachineList(machines=[listed_machine(view) for view in shown], next=next)


async def _page(machines: Machines, query: MachineQuery, state: api.State | None, limit: int) -> tuple[list[MachineView], str | None]:
    """The store knows less of a state than the machines do: it is asked again for as long as too few of what it finds have the one that is wanted.

    A page may have fewer machines than wanted, even none, when others of another state were looked at; then `next` goes on behind those.
    """
    shown: list[MachineView] = []
    looked_at = 0
    while True:
        batch = limit if state is None else max(limit, BATCH)
        found = await machines.list(replace(query, limit=batch))
        looked_at += len(found)
        for view in found:
            if state is None or view.state == state:
                shown.append(view)
                if len(shown) == limit:
                    return shown, _next(view)
        if len(found) < batch:
            return shown, None
        last = found[-1]
        query = replace(query, before=(last.record.created_at, last.record.id))
        if looked_at >= LOOKED_AT_MAX:
            return shown, _next(last)


def _next(last: MachineView) -> str:
    return base64.urlsafe_b64encode(json.dumps([last.record.created_at, last.record.id]).encode()).decode().rstrip("=")


def _cursor(text: str | None) -> tuple[float, MachineId] | None:
    if text is None:
        return None
    try:
        created_at, id = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return float(created_at), MachineId(str(id))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidInput("after is not a cursor that a list of machines has given as `next`") from None


@routes.add("GET", "/v1/machine/{name}", scope="read", errors=(MachineNotFound,))
async def show(call: Call) -> api.Machine:
    """One machine: its state, limits and size."""
    return await _machine(call)


async def _machine(call: Call) -> api.Machine:
    view = await call.machines.get(call.name)
    facts = await call.machines.facts(call.name)
    return api.Machine(
        **machine_fields(view), position=facts.position, memory_bytes=facts.memory_bytes, disk_bytes=facts.disk_bytes, forked_from=facts.source
    )


@routes.add(
    "PATCH",
    "/v1/machine/{name}",
    action="machine.change",
    scope="manage",
    errors=(MachineNotFound, DiskFull),
    example={"tags": {"project": "demo"}, "idle_seconds": 60},
)
async def change(call: Call, body: api.MachineChange) -> api.Machine:
    """Change a machine's tags, metadata or settings; what is not named stays."""
    fields: dict[str, Any] = {
        name: value
        for name in ("tags", "metadata", "idle_seconds", "history", "durability")
        if (value := getattr(body, name)) is not None
    }  # fmt: skip
    if body.egress is not None or body.egress_allow is not None:
        fields["egress"] = PolicyChange(body.egress, body.egress_allow)
    if body.expires_at is not None:
        fields["expires_at"] = None if body.expires_at == "never" else from_wire("expires_at", body.expires_at)
    await call.machines.update(call.name, **fields)
    call.notes.update({"changed": sorted(fields), **_egress(body)})
    return await _machine(call)


def _egress(body: api.NewMachine | api.MachineChange) -> dict[str, Any]:
    """What of it the audit log is told: it is what a machine can do to others."""
    return {name: value for name in ("egress", "egress_allow") if (value := getattr(body, name)) is not None}


@routes.add("DELETE", "/v1/machine/{name}", action="machine.delete", scope="manage", errors=(MachineNotFound,))
async def delete(call: Call) -> api.Deleted:
    """Delete a machine at once, whatever it is doing."""
    await call.machines.delete(call.name)
    return api.Deleted(deleted=True)


@routes.add(
    "POST", "/v1/machine/{name}/fork", action="machine.fork", scope="manage", keyed=True,
    errors=(*IN_TURN, MachineBroken, NameTaken, KeyReused, NoCapacity, QuotaExceeded), example={"count": 1},
)  # fmt: skip
async def fork(call: Call, body: api.Fork | None = None) -> api.Forked:
    """New machines that go on from where this one is, memory and files."""
    wanted = body or api.Fork()
    views = await call.machines.fork(call.name, count=1 if wanted.count is None else wanted.count, names=wanted.names, key=call.key)
    names: Sequence[str] = [view.record.name for view in views]
    return api.Forked(machine_name=names[0], machine_names=list(names))


@routes.add("POST", "/v1/machine/{name}/hibernate", action="machine.hibernate", scope="manage", errors=(*IN_TURN, WrongState, MachineBroken))
async def hibernate(call: Call) -> api.Machine:
    """Put a machine to sleep after what it has to do; answers when it is asleep."""
    await call.machines.hibernate(call.name)
    return await _machine(call)


@routes.add("POST", "/v1/machine/{name}/wake", action="machine.wake", scope="exec", errors=(*IN_TURN, MachineBroken, NoCapacity))
async def wake(call: Call) -> api.Machine:
    """Wake a machine; answers when it is awake."""
    await call.machines.wake(call.name)
    return await _machine(call)


@routes.add(
    "POST", "/v1/machine/{name}/reset", action="machine.reset", scope="manage",
    errors=(*IN_TURN, NoCapacity, QuotaExceeded), example={"discard": True},
)  # fmt: skip
async def reset(call: Call, body: api.Reset | None = None) -> api.WasReset:
    """Begin again from the machine's image. Undone by rolling back to `undo`; with `discard` nothing is saved first, and there is none."""
    return api.WasReset(undo=await call.machines.reset(call.name, discard=bool(body and body.discard)))
