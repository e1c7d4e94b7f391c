"""New machines: what they begin as, from what was asked for and the server's defaults."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from everforge.store.base import Durability, History, MachineRecord, PointReason, PointRecord, Store
from everforge.store.quotas import Quota, check_disk, check_new
from everforge.store.threads import to_its_end
from everforge.wire.errors import InvalidInput
from everforge.wire.events import START, Position
from everforge.wire.ids import AccountId, SnapshotId, machine_name, new_machine_id, new_machine_name

from . import requests
from .keys import Key
from .lifecycle import Residence
from .requests import NewMachine

if TYPE_CHECKING:
    from .forge import Forge


async def create(forge: Forge, wanted: NewMachine, account: AccountId, key: str | None) -> MachineRecord:
    """From its image, started behind the answer. With a key: what was made with it before."""
    record = await new_record(wanted, account, forge)
    image = requests.image(forge.settings.image if wanted.image is None else wanted.image)
    check_memory(forge, record)
    made, _ = await forge.keys.once(account, "create", key, describe(wanted, record), lambda key: to_its_end(_begin(forge, record, image, key)))
    return made[0]


async def _begin(forge: Forge, record: MachineRecord, image: str, key: Key) -> Sequence[MachineRecord]:
    entry = await forge.images.find(image)
    template = forge.templates.id(entry.image.digest, record.disk_mb)  # made behind the answer, if it is not there yet
    record = replace(record, image=entry.image.digest, head=template)
    point = first_point(record, template, "template", START, None)
    with forge.steps.step("record new machine"):
        await forge.store.create(record, points=[point], key=key([record.id]), quota=await forge.quota(record.account))
    forge.signals.tell("machine.created", account=record.account, machine=record.name)
    forge.begin(record)
    if record.expires_at is not None:
        forge.expiry.look_again()
    return [record]


async def check_room(store: Store, quota: Quota, account: AccountId, adding: int) -> None:
    """May the account have so many more? The store looks again when it writes them. Raises QuotaExceeded."""
    if quota.machines or quota.disk_mb:
        used = await store.usage(account)
        check_new(quota, sum(used.residences.values()), adding, used.disk_bytes)


async def check_disk_room(store: Store, quota: Quota, account: AccountId) -> None:
    """May it have one more snapshot? Raises QuotaExceeded."""
    if quota.disk_mb:
        check_disk(quota, (await store.usage(account)).disk_bytes)


def check_memory(forge: Forge, record: MachineRecord) -> None:
    if record.memory_mb > forge.admission.budget_mb:
        raise InvalidInput(f"memory_mb is {record.memory_mb}, but this server has {forge.admission.budget_mb} MB for all its machines")


def describe(wanted: NewMachine, record: MachineRecord) -> dict[str, Any]:
    """The request, to know it again; the larger parts as they were found to be sound."""
    sound = ("tags", "metadata", "env", "egress")
    return {f.name: getattr(record if f.name in sound else wanted, f.name) for f in fields(wanted)}


async def new_record(wanted: NewMachine, account: AccountId, forge: Forge) -> MachineRecord:
    """Raises InvalidInput. Its image and its head are not known yet."""
    s = forge.settings
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
        engine=forge.engine.name,
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
        egress=await forge.doors.new_policy(account, wanted.egress, wanted.egress_allow),
        expires_at=requests.expires_at(wanted.expires_at, now),
    )


def first_point(record: MachineRecord, snapshot: SnapshotId, reason: PointReason, position: Position, instruction: int | None) -> PointRecord:
    """Point 0: what the machine began as."""
    return PointRecord(snapshot=snapshot, machine=record.id, position=position, instruction=instruction, created_at=record.created_at, reason=reason)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
