"""Between rows and the records, points and events that they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from everforge.store.base import MachineRecord, PointRecord
from everforge.store.tape import FIELDS
from everforge.wire.errors import InvalidInput, StoreDamaged
from everforge.wire.events import Accepted, Event, decode, encode_body

JSON_FIELDS = frozenset({"tags", "metadata", "env", "egress"})


def to_json(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(value), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidInput(f"a value cannot be written as JSON: {e}") from e


def column_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_json(value) if name in JSON_FIELDS else value for name, value in values.items()}


def record_values(record: MachineRecord) -> dict[str, Any]:
    return column_values({name: getattr(record, name) for name in FIELDS})


def to_record(row: Sequence[Any]) -> MachineRecord:
    values = dict(zip(FIELDS, row, strict=True))
    try:
        for name in JSON_FIELDS:
            values[name] = {} if values[name] == "{}" else json.loads(values[name])
    except ValueError as e:
        raise StoreDamaged(f"the record of machine {values['id']} cannot be read: restore the database from a backup") from e
    return MachineRecord(**values)


def event_row(machine: str, event: Event) -> tuple[Any, ...]:
    return (
        machine,
        event.position,
        event.width,
        event.kind,
        getattr(event, "instruction", None),
        event.key if isinstance(event, Accepted) else None,
        event.epoch,
        event.frame,
        event.time,
        encode_body(event),
    )


def to_event(row: Sequence[Any]) -> Event:
    kind, body, position, time, epoch, frame = row
    try:
        return decode(kind, body, position=position, time=time, epoch=epoch, frame=frame)
    except (ValueError, KeyError, TypeError) as e:
        raise StoreDamaged(f"an entry of kind {kind} at position {position} cannot be read: it is damaged, or from a newer version") from e


def point_row(point: PointRecord) -> tuple[Any, ...]:
    return (point.machine, point.snapshot, point.position, point.instruction, point.created_at, point.reason, point.name, point.size_bytes)


def to_point(row: Sequence[Any]) -> PointRecord:
    snapshot, machine, position, instruction, created_at, reason, name, size_bytes = row
    return PointRecord(
        snapshot=snapshot,
        machine=machine,
        position=position,
        instruction=instruction,
        created_at=created_at,
        reason=reason,
        name=name,
        size_bytes=size_bytes,
    )
