"""Machines, snapshots, results and tape entries as clients see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everforge.machines.service import MachineView
from everforge.store.base import PointRecord
from everforge.wire import api
from everforge.wire.events import Accepted, Answered, Ended, Event, Output, body

from .times import to_wire, to_wire_or_none

# ForeverVM's short names of what a result may be shown as.
SHORT_NAMES: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/svg+xml": "svg",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "text/plain": "text",
    "application/json": "json",
    "application/javascript": "javascript",
    "application/pdf": "pdf",
}
PICTURE = "image/png"
RUNNING = frozenset({"creating", "ready", "busy", "hibernating", "waking"})


def machine_fields(view: MachineView) -> dict[str, Any]:
    r = view.record
    pending = view.pending > 0
    return {
        "name": r.name, "state": view.state, "created_at": to_wire(r.created_at), "last_used_at": to_wire(r.last_used_at),
        "expires_at": to_wire_or_none(r.expires_at), "tags": dict(r.tags), "metadata": dict(r.metadata), "memory_mb": r.memory_mb,
        "cpus": r.cpus, "disk_mb": r.disk_mb, "processes": r.processes, "engine": r.engine, "image": r.image, "idle_seconds": r.idle_seconds,
        "history": r.history, "durability": r.durability,
        "egress": r.egress.get("policy", "none"), "egress_allow": list(r.egress.get("allow", ())),
        "next_instruction": r.next_instruction, "pending_instructions": view.pending,
        "error": r.error, "running": view.state in RUNNING, "has_pending_instruction": pending,
        "has_pending_instructions": pending,
    }  # fmt: skip


def listed_machine(view: MachineView) -> api.ListedMachine:
    return api.ListedMachine(**machine_fields(view))


def snapshot(point: PointRecord) -> api.Snapshot:
    return api.Snapshot(
        id=point.snapshot,
        name=point.name,
        position=point.position,
        instruction=point.instruction,
        created_at=to_wire(point.created_at),
        reason=point.reason,
        size_bytes=point.size_bytes,
    )


def bundle(data: Mapping[str, Any]) -> dict[str, Any]:
    """A MIME bundle under short names, where there are some."""
    return {SHORT_NAMES.get(mime, mime): content for mime, content in data.items()}


def result(ended: Ended, displayed: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Of `value` and `error` the unused one is absent: ForeverVM's clients tell them apart by that."""
    found: dict[str, Any] = {"runtime_ms": ended.runtime_ms, "end": ended.end}
    if ended.end == "value":
        found |= {"value": ended.value, "data": bundle(data) if (data := _data(ended.data, displayed)) else None}
    else:
        found |= {"error": ended.error or ended.end, "traceback": ended.traceback}
        if ended.retry != "never":
            found["retry"] = ended.retry
    if ended.note:
        found["note"] = ended.note
    if displayed:
        found["displays"] = [bundle(data) for data in displayed]
    return found


def _data(own: Mapping[str, Any] | None, displayed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Of the value itself; with the last picture that was displayed, since ForeverVM's clients look for it here."""
    picture = next((shown for shown in reversed(displayed) if PICTURE in shown), None)
    if own:
        return {PICTURE: picture[PICTURE], **own} if picture else own
    return picture or (displayed[-1] if displayed else None)


def entry(event: Event) -> dict[str, Any]:
    found = body(event)
    if isinstance(event, Output):
        found["seq"] = found.pop("first_seq")
    elif isinstance(event, Accepted):
        found["env"] = sorted(event.env or ())  # names alone: whoever may read need not know what was handed in
    elif isinstance(event, Answered):  # what was answered is between the client and the code
        found = {"instruction": event.instruction, "call": event.call}
    return {"type": event.kind, "position": event.position, "cursor": event.position + event.width - 1, "time": to_wire(event.time), **found}
