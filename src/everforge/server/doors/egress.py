"""What machines may reach, and what they have tried to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from everforge.machines.doors import PolicyChange
from everforge.store.egress import AttemptRecord
from everforge.wire import api
from everforge.wire.errors import DiskFull, InvalidInput, MachineNotFound

from ..calls import Call
from ..routes import Routes
from ..times import to_wire, to_wire_or_none

routes = Routes("egress")
LOG_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsQuery(api.Query):
    before: int | None = None
    limit: int = LOG_LIMIT


@routes.add("GET", "/v1/machine/{name}/egress", scope="read", errors=(MachineNotFound,))
async def show_egress(call: Call) -> api.EgressPolicy:
    """What the machine may reach."""
    return _policy(call.service.egress.in_force((await call.machines.get(call.name)).record.egress))


@routes.add(
    "POST",
    "/v1/machine/{name}/egress",
    action="egress.change",
    scope="manage",
    errors=(MachineNotFound, DiskFull),
    example={"allow": ["api.example.com"]},
)
async def change_egress(call: Call, body: api.EgressChange) -> api.EgressPolicy:
    """Add rules and take some away, or choose another policy. It counts at once, also for a machine that is awake. `none` drops its rules."""
    await call.machines.update(call.name, egress=PolicyChange(body.egress, add=body.allow or (), remove=body.deny or ()))
    policy = await show_egress(call)
    call.notes.update({"egress": policy.egress, "allow": body.allow or [], "deny": body.deny or []})
    return policy


@routes.add("GET", "/v1/machine/{name}/egress/log", scope="read", errors=(MachineNotFound,))
async def egress_log(call: Call, query: AttemptsQuery) -> api.EgressLog:
    """Everything that the machine has tried to reach, newest first."""
    if query.before is not None and query.before < 0:
        raise InvalidInput("before is the number of an attempt, which is not below 0")
    found = await call.machines.egress_log(call.name, query.before, query.limit)
    return api.EgressLog(attempts=[_attempt(record) for record in found], next=found[-1].number if len(found) == query.limit else None)


def _attempt(r: AttemptRecord) -> api.EgressAttempt:
    return api.EgressAttempt(
        number=r.number, time=to_wire(r.began_at), host=r.host, port=r.port, speech=r.speech, method=r.method, path=r.path,
        verdict=cast("Any", r.verdict), why=r.why, allowed_by=r.allowed_by, address=r.address, sent_bytes=r.sent_bytes,
        received_bytes=r.received_bytes, secrets=r.secrets.split(), ended_at=to_wire_or_none(r.ended_at),
    )  # fmt: skip


@routes.add("GET", "/v1/egress", scope="read")
async def show_egress_default(call: Call) -> api.EgressPolicy:
    """What new machines of the account may reach when nothing else is asked for."""
    return _policy(await call.service.egress.default(call.identity.account))


@routes.add(
    "PUT", "/v1/egress", action="egress.default", scope="manage", errors=(DiskFull,), example={"egress": "list", "egress_allow": ["api.example.com"]}
)
async def change_egress_default(call: Call, body: api.EgressDefault) -> api.EgressPolicy:
    """Change that. An empty body goes back to the server's own default. Machines that are there stay as they are."""
    policy = _policy(await call.service.egress.set_default(call.identity.account, body.egress, body.egress_allow))
    call.notes.update({"egress": policy.egress, "egress_allow": policy.egress_allow})
    return policy


def _policy(found: Mapping[str, Any]) -> api.EgressPolicy:
    return api.EgressPolicy(egress=found.get("policy", "none"), egress_allow=list(found.get("allow", ())))
