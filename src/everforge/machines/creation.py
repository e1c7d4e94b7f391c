"""What a new machine begins as: its record, from what was asked for and the server's defaults, and its first point."""

from __future__ import annotations

import time
from typing import Any

from everforge.store.base import Durability, History, MachineRecord, PointReason, PointRecord
from everforge.wire.events import Position
from everforge.wire.ids import AccountId, SnapshotId, machine_name, new_machine_id, new_machine_name

from . import requests
from .lifecycle import Residence
from .requests import NewMachine
from .settings import MachineSettings


def new_record(wanted: NewMachine, account: AccountId, settings: MachineSettings, engine: str) -> MachineRecord:
    """Raises InvalidInput. Its image and its head are not known yet."""
    s = settings
    name = new_machine_name() if wanted.name is None else machine_name(wanted.name)
    now = time.time()
    memory_mb = requests.whole("memory_mb", _or(wanted.memory_mb, s.memory_mb), s.memory_mb_min, s.memory_mb_max, "MB")
    disk_mb = requests.disk_mb(_or(wanted.disk_mb, s.disk_mb), s)
    processes = requests.whole("processes", _or(wanted.processes, s.processes), 4, s.processes_max, "processes")
    return MachineRecord(
        id=new_machine_id(),
        name=name,
        account=account,
        created_at=now,
        last_used_at=now,
        residence=str(Residence.CREATING),
        engine=engine,
        image="",
        memory_mb=memory_mb,
        cpus=requests.cpus(_or(wanted.cpus, s.cpus), s),
        disk_mb=disk_mb,
        processes=processes,
        idle_seconds=requests.seconds("idle_seconds", _or(wanted.idle_seconds, s.idle_seconds), 0.01, s.idle_seconds_max),
        history=requests.one_of("history", wanted.history, History),
        durability=requests.one_of("durability", wanted.durability, Durability),
        tags=requests.tags(_or(wanted.tags, {}), s),
        metadata=requests.metadata(_or(wanted.metadata, {}), s),
        env=requests.env(_or(wanted.env, {}), s),
    )


def first_point(record: MachineRecord, snapshot: SnapshotId, reason: PointReason, position: Position, instruction: int | None) -> PointRecord:
    """Point 0: what the machine began as."""
    return PointRecord(snapshot=snapshot, machine=record.id, position=position, instruction=instruction, created_at=record.created_at, reason=reason)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
