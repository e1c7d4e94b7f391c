"""The record and the tape of one machine, written together. The only place where a machine's residence changes."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from everforge.signals import Signals
from everforge.store.base import Change, MachineRecord, PointRecord, Store
from everforge.wire.errors import DiskFull
from everforge.wire.events import START, Ended, Event, Moved, Position
from everforge.wire.ids import SnapshotId

from .lifecycle import Arrow, Residence, move
from .steps import Steps
from .tape import TapeReaders

log = logging.getLogger(__name__)
USED_EVERY_SECONDS = 60.0  # a crash of the server forgets no more of when a machine was last used
FULL_DISK_PAUSE_SECONDS = 0.5  # between tries to write what must be written
STUCK_SECONDS = 10.0  # without room, until those who wait for what is to be written are told
ROOM_SECONDS = 10.0  # for room to be there once what took it was destroyed

# What a reader of the tape should hear of; the other arrows are beginnings and ends of these.
TOLD = frozenset(Arrow) - {Arrow.SAVE_STARTED, Arrow.SAVE_ENDED, Arrow.SLEEP_STARTED, Arrow.WAKE_STARTED, Arrow.WANTED_AGAIN, Arrow.REMOVED}

ALIVE = frozenset({Residence.AWAKE, Residence.SAVING, Residence.HIBERNATING})
BREAKING = frozenset({Arrow.START_FAILED, Arrow.SNAPSHOT_BAD, Arrow.SANDBOX_LOST})
SIGNALS = {Arrow.WOKEN: "machine.woken", Arrow.SLEEP_RECORDED: "machine.slept", Arrow.REMOVED: "machine.deleted"}


@dataclass(slots=True)
class _Publication:
    done: bool = False
    events: Sequence[Event] = ()


class Dossier:
    def __init__(self, record: MachineRecord, store: Store, readers: TapeReaders, steps: Steps, signals: Signals | None = None) -> None:
        self.record = record
        self.residence = Residence(record.residence)
        self.store = store
        self.steps = steps
        self.signals = signals or Signals()
        self.changing = asyncio.Lock()  # for whoever makes something new of what the record says
        self.waits_for_room = asyncio.Event()  # something that has happened cannot be written: the disk is full
        self.stuck: DiskFull | None = None  # for so long that whoever waits for it should know
        self.on_stuck: Callable[[DiskFull], None] = lambda _: None
        self.awake_until: float | None = None  # where it was found lost: how long it was awake for certain
        self._waiting = 0
        self._readers = readers
        self._moved = asyncio.Event()
        self._used_at = 0.0
        self._end = START  # of the tape, as far as it was written and published here
        self._publications: deque[_Publication] = deque()

    def use(self) -> dict[str, Any]:
        """It was used just now; returns what of that is to be recorded. Only people look at the time, so it is written now and then."""
        self._used_at = now = time.time()
        fields: dict[str, Any] = {}
        if self.record.notice is not None:
            fields["notice"] = None  # told
        if now >= self.record.last_used_at + USED_EVERY_SECONDS:
            fields["last_used_at"] = now
        return fields

    @property
    def used_at(self) -> float:
        return max(self._used_at, self.record.last_used_at)

    @property
    def present(self) -> MachineRecord:
        """The record with what was not yet written of it."""
        return _changed(self.record, {"last_used_at": self.used_at})

    async def write(
        self,
        arrow: Arrow | None = None,
        *,
        set: Mapping[str, Any] | None = None,
        events: Sequence[Event] = (),
        detail: Mapping[str, Any] | None = None,
        following: Sequence[tuple[Arrow, Mapping[str, Any]]] = (),
        add_points: Sequence[PointRecord] = (),
        drop_points: Sequence[SnapshotId] = (),
        durable: bool = False,
        step: str | None = None,
        patient: bool = True,
        room_seconds: float = math.inf,
    ) -> Sequence[Event]:
        """One transaction. With an arrow the residence moves along it (and along those `following` it, each with its detail), or WrongState is raised
        and nothing has happened.

        What has happened must be recorded: a `patient` write waits for room on a full disk, for `room_seconds`. What is only about to begin is
        refused with DiskFull.
        """
        values = dict(set or {})
        now, awake_ms = time.time(), 0
        if arrow is not None:
            residence = self.residence
            for one, its_detail in ((arrow, detail or {}), *following):
                residence = move(residence, one)
                if one in TOLD:
                    events = [*events, Moved(event=str(one), residence=str(residence), detail=dict(its_detail))]
            values["residence"] = str(residence)
            awake_ms = self._awake(residence, values, now)
        for event in events:
            object.__setattr__(event, "time", now)  # new, and nobody has seen them: dataclasses.replace would cost more than the write
        change = Change(
            machine=self.record.id, set=values, events=events, add_points=add_points, drop_points=drop_points, durable=durable, awake_ms=awake_ms
        )
        turn = _Publication()
        self._publications.append(turn)  # in the order of the commits, which is that of the positions
        try:
            with self.steps.step(f"record {arrow or step or 'change'}"):
                written = await self._commit(change, room_seconds if patient else 0.0)
            self.record = _changed(self.record, values)
            if "residence" in values:
                self.residence = Residence(values["residence"])
                self.stir()
                self._signal(arrow, detail)
            turn.events = written
            self._signal_ends(events)
        finally:
            turn.done = True
            self._publish()
        return written

    def _awake(self, target: Residence, values: dict[str, Any], now: float) -> int:
        """Notes since when it is awake; the time that it was, where it no longer is."""
        since = self.record.awake_since
        if target in ALIVE:
            if self.residence not in ALIVE:
                values["awake_since"] = now
            return 0
        if since is None:
            return 0
        values["awake_since"] = None
        until = now if self.awake_until is None else min(now, self.awake_until)
        return max(0, int((until - since) * 1000))

    def _signal(self, arrow: Arrow | None, detail: Mapping[str, Any] | None) -> None:
        if arrow in BREAKING:  # also where it is back at a snapshot at once: what it had is gone
            self.signals.tell("machine.broken", account=self.record.account, machine=self.record.name, error=(detail or {}).get("error"))
        elif kind := SIGNALS.get(arrow) if arrow is not None else None:
            self.signals.tell(kind, account=self.record.account, machine=self.record.name)

    def _signal_ends(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Ended):
                who = {"account": self.record.account, "machine": self.record.name}
                self.signals.tell("instruction.ended", **who, instruction=event.instruction, end=event.end, runtime_ms=event.runtime_ms)
                if event.end == "timed_out":
                    self.signals.tell("limit.hit", **who, limit="timeout_seconds")

    def _publish(self) -> None:
        """A durable write is answered later than a plain one that came after it; readers must see them in the order of the tape all the same."""
        while self._publications and self._publications[0].done:
            events = self._publications.popleft().events
            if events:
                self._end = Position(events[-1].position + events[-1].width - 1)
                self._readers.publish(self.record.id, events)

    def next_move(self) -> asyncio.Event:
        """Set when the residence has changed."""
        return self._moved

    def stir(self) -> None:
        """Whoever waits for a move looks again."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def end_position(self) -> Position:
        """The last position on the tape."""
        return self._end if self._end != START else await self.store.end_position(self.record.id)

    async def _commit(self, change: Change, room_seconds: float) -> Sequence[Event]:
        try:
            return await self.store.commit(change)
        except DiskFull as e:
            if not room_seconds:
                raise
            return await self._commit_when_there_is_room(change, e, room_seconds)

    async def _commit_when_there_is_room(self, change: Change, error: DiskFull, room_seconds: float) -> Sequence[Event]:
        """Said when it begins and when it is over, however long it takes and however many writes wait."""
        if not self._waiting:
            log.warning("machine %s waits for room on the disk: %s", self.record.name, error.message)
        self._waiting += 1
        self.waits_for_room.set()
        began = time.monotonic()
        try:
            while True:
                await asyncio.sleep(FULL_DISK_PAUSE_SECONDS)
                try:
                    written = await self.store.commit(change)
                except DiskFull:
                    waited_seconds = time.monotonic() - began
                    if waited_seconds > room_seconds:
                        raise
                    if waited_seconds > STUCK_SECONDS:
                        self._say_stuck()
                    continue
                if self._waiting == 1:
                    log.warning("machine %s found room on the disk, and goes on", self.record.name)
                return written
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.waits_for_room.clear()
                self.stuck = None

    def _say_stuck(self) -> None:
        """Again and again: there may be new ones who wait."""
        if self.stuck is None:
            self.stuck = DiskFull(
                f"the server's disk is full: what machine {self.record.name} says, and the ends of its instructions, can only be recorded when"
                " there is room. Delete machines or snapshots, or reset a machine and discard what it has; or ask again later"
            )
            self._readers.stir(self.record.id)
        self.on_stuck(self.stuck)


_FIELDS = tuple(f.name for f in fields(MachineRecord))


def _changed(record: MachineRecord, values: Mapping[str, Any]) -> MachineRecord:
    """dataclasses.replace for this one class, ten times as fast: it is done twice for every instruction."""
    if not values:
        return record
    new = object.__new__(MachineRecord)
    for name in _FIELDS:
        object.__setattr__(new, name, values[name] if name in values else getattr(record, name))
    return new
