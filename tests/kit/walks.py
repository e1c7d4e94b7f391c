"""One walk through each operation, for tests that end the server at every step of it. The steps are heard from the code, not listed by hand.

A walk works on one machine whose variable `seen` holds the numbers that were appended to it; `Journal` remembers which of them were acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.store.base import Change
from everforge.store.snapshots import PACKED_BYTES
from everforge.wire.errors import DiskFull, MachineNotFound
from everforge.wire.events import Ended, Event

from .faults import Faults
from .house import House
from .packed import until_packed

NAME = "walker"
FORK = "walker-fork"
SECOND = "second"


class NotDone(Exception):
    """An instruction ended in another way than by its value."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(str(ended))
        self.ended = ended


async def value_of(machines: Machines, name: str, code: str) -> str | None:
    ended = await machines.run(name, code)
    if ended.end != "value":
        raise NotDone(ended)
    return ended.value


@dataclass
class Journal:
    """What this client was told."""

    sent: list[int] = field(default_factory=list[int])
    acknowledged: list[int] = field(default_factory=list[int])  # the result came
    rolled_back: bool = False  # was asked for, and
    went_back: bool = False  # was told to be done
    deleted: bool = False  # was asked for, and
    gone: bool = False  # was told to be done
    made: list[str] = field(default_factory=list[str])  # other machines that were told to be there
    kept: list[int] = field(default_factory=list[int])  # what `seen` was when it was last told to sleep, or to be durable
    points: dict[str, list[int]] = field(default_factory=dict[str, list[int]])  # by their names, with what `seen` was

    async def append(self, machines: Machines) -> None:
        number = len(self.sent)
        self.sent.append(number)
        await value_of(machines, NAME, f"seen.append({number})")
        self.acknowledged.append(number)

    async def snapshot(self, machines: Machines, label: str) -> None:
        await machines.snapshot(NAME, label)
        self.points[label] = list(self.acknowledged)


async def prepare(machines: Machines, journal: Journal) -> None:
    await machines.create(NewMachine(name=NAME))
    await machines.run(NAME, "seen = []")
    await journal.append(machines)
    await journal.snapshot(machines, "start")
    await journal.append(machines)


async def walk_exec(machines: Machines, journal: Journal) -> None:
    await journal.append(machines)


async def walk_save(machines: Machines, journal: Journal) -> None:
    await journal.snapshot(machines, "walk")
    await journal.append(machines)


async def walk_sleep_and_wake(machines: Machines, journal: Journal) -> None:
    await machines.hibernate(NAME)
    journal.kept = list(journal.acknowledged)
    await journal.append(machines)


async def walk_fork(machines: Machines, journal: Journal) -> None:
    await machines.fork(NAME, names=[FORK])
    journal.made.append(FORK)
    await value_of(machines, FORK, "len(seen)")


async def walk_rollback(machines: Machines, journal: Journal) -> None:
    journal.rolled_back = True
    await machines.rollback(NAME, snapshot="start")
    journal.went_back = True
    await value_of(machines, NAME, "len(seen)")


async def walk_reset(machines: Machines, journal: Journal) -> None:
    journal.rolled_back = True
    await machines.reset(NAME)
    journal.went_back = True
    await value_of(machines, NAME, "1")


async def walk_rollback_and_discard(machines: Machines, journal: Journal) -> None:
    journal.rolled_back = True
    await machines.rollback(NAME, snapshot="start", discard=True)
    journal.went_back = True
    await value_of(machines, NAME, "len(seen)")


async def walk_reset_and_discard(machines: Machines, journal: Journal) -> None:
    journal.rolled_back = True
    await machines.reset(NAME, discard=True)
    journal.went_back = True
    await value_of(machines, NAME, "1")


async def walk_forget(machines: Machines, journal: Journal) -> None:
    await machines.hibernate(NAME)
    journal.kept = list(journal.acknowledged)
    journal.points.pop("start", None)
    await machines.forget(NAME, "start")


async def walk_delete(machines: Machines, journal: Journal) -> None:
    journal.deleted = True
    await machines.delete(NAME)
    journal.gone = True


@asynccontextmanager
async def a_disk_that_its_sandbox_fills(machines: Machines) -> AsyncGenerator[None]:
    """Nothing can be recorded while it is there, and then everything."""
    store, engine = machines.forge.store, machines.forge.engine
    commit = store.commit
    filling = (await machines.get(NAME)).record.sandbox

    async def when_there_is_room(change: Change) -> Sequence[Event]:
        if filling in await engine.survivors():
            raise DiskFull("no space left on the device")
        return await commit(change)

    store.commit = when_there_is_room
    try:
        yield
    finally:
        store.commit = commit


async def walk_delete_on_a_full_disk(machines: Machines, journal: Journal) -> None:
    journal.rolled_back = True  # what was not saved goes before the record, and is gone for a server that comes in between
    async with a_disk_that_its_sandbox_fills(machines):
        await walk_delete(machines, journal)


async def walk_reset_on_a_full_disk(machines: Machines, journal: Journal) -> None:
    async with a_disk_that_its_sandbox_fills(machines):
        journal.rolled_back = True
        await machines.reset(NAME, discard=True)
    journal.went_back = True
    await value_of(machines, NAME, "1")


async def walk_each(machines: Machines, journal: Journal) -> None:
    await machines.update(NAME, durability="each")
    await journal.append(machines)
    journal.kept = list(journal.acknowledged)


async def walk_create(machines: Machines, journal: Journal) -> None:
    await machines.create(NewMachine(name=SECOND))
    journal.made.append(SECOND)
    assert await value_of(machines, SECOND, "1 + 1") == "2"


async def walk_pack(machines: Machines, journal: Journal) -> None:
    """Two points that are soon no longer the head."""
    await journal.snapshot(machines, "one")
    await journal.append(machines)
    await journal.snapshot(machines, "two")
    await until_packed(machines, NAME)


Walk = Callable[[Machines, Journal], Awaitable[None]]
WALKS: dict[str, Walk] = {
    "create": walk_create,
    "exec": walk_exec,
    "save": walk_save,
    "sleep and wake": walk_sleep_and_wake,
    "fork": walk_fork,
    "rollback": walk_rollback,
    "reset": walk_reset,
    "rollback and discard": walk_rollback_and_discard,
    "reset and discard": walk_reset_and_discard,
    "forget": walk_forget,
    "delete": walk_delete,
    "delete on a full disk": walk_delete_on_a_full_disk,
    "reset on a full disk": walk_reset_on_a_full_disk,
    "each": walk_each,
    "pack": walk_pack,
}


def is_part_of(walk: str, step: str) -> bool:
    """Points are packed behind every walk, sooner or later; those steps belong to the one that waits for it, and the others to the others."""
    return (step in ("before pack", "after pack")) == (walk == "pack")


def house_for(walk: str, faults: Faults | None = None) -> House:
    """What the fake engine saves is small, and as a rule not worth packing."""
    return House(packed_bytes=1 if walk == "pack" else PACKED_BYTES, faults=faults)


async def check_after(machines: Machines, journal: Journal) -> None:
    """After the crash: a state the tables allow, every acknowledged number there once and in order, the machine answers, and can go back."""
    try:
        view = await machines.get(NAME)
    except MachineNotFound:
        assert journal.deleted, "the machine is gone, and nobody asked for that"
        return
    assert view.state != "broken", view.record.error
    await _check_seen(machines, journal)
    for label, seen in journal.points.items():
        await machines.rollback(NAME, snapshot=label)
        assert (await machines.run(NAME, "seen")).value == repr(seen), label


async def _check_seen(machines: Machines, journal: Journal) -> None:
    ended = await machines.run(NAME, "seen")
    if journal.rolled_back and ended.value != repr(journal.sent[: len(journal.acknowledged)]):
        assert ended.value == "[0]" or "NameError" in (ended.error or ""), ended
        return
    assert ended.value is not None, ended
    seen: list[int] = eval(ended.value)
    assert seen == sorted(set(seen)), "twice, or out of order"
    assert set(journal.acknowledged) <= set(seen) <= set(journal.sent), (journal, seen)
