"""The door to the machines of one account: what a server or a script calls. Checks what was asked, finds the keeper, and lets it do the work."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from everforge.store.base import Durability, History, MachineQuery, MachineRecord, PointRecord
from everforge.store.egress import AttemptRecord
from everforge.store.threads import to_its_end
from everforge.wire.errors import Forbidden, GuestTooOld, InstructionNotFound, InvalidInput, MachineNotFound, NameTaken, SandboxLost
from everforge.wire.events import START, Accepted, Answered, Displayed, Ended, Event, Position
from everforge.wire.ids import OWNER, AccountId, MachineId, MachineName, SnapshotId, machine_name, new_machine_name

from . import creation, forks, marks, requests
from .agenda import Work
from .doors import PolicyChange
from .files import MachineFiles
from .forge import Forge
from .keeper import GUEST_TOO_OLD, Keeper
from .keys import Key
from .lifecycle import Residence, Turn, state
from .points import Target
from .requests import NewMachine

INSTRUCTION_MAX = 2**62


@dataclass(frozen=True, slots=True)
class MachineView:
    """A machine as its owner sees it."""

    record: MachineRecord
    state: str
    pending: int  # instructions accepted and not ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    position: Position  # the tape's last
    memory_bytes: int  # of the host, now
    disk_bytes: int  # its snapshots
    source: MachineName | None  # what it was forked from, while that is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    machines: int
    awake: int  # and those on their way there, or to sleep
    asleep: int
    broken: int
    instructions: int  # accepted, and
    runtime_ms: int  # how long they ran: also of machines that are gone
    disk_bytes: int  # snapshots, as they were saved
    egress_bytes: int  # sent out and received
    awake_seconds: float  # of all machines together


@dataclass(frozen=True, slots=True)
class Completion:
    matches: Sequence[str]
    start: int  # what of the code each of them replaces, in characters
    end: int
    busy: bool  # the interpreter was, and could not be asked


@dataclass(frozen=True, slots=True)
class Running:
    instruction: int
    waits: bool  # for an answer of the client's program


@dataclass(frozen=True, slots=True)
class RolledBack:
    point: PointRecord
    undo: SnapshotId | None  # the point that brings back what was before; None where there was nothing


class Machines:
    """The machines of one account, or those of them that have certain tags. Others are not there."""

    def __init__(self, forge: Forge, account: AccountId = OWNER, tags: Mapping[str, str] | None = None) -> None:
        self.forge = forge
        self.account = account
        self._tags = tags or {}

    def of(self, account: AccountId, tags: Mapping[str, str] | None = None) -> Machines:
        return Machines(self.forge, account, tags)

    # --- which are there -----------------------------------------------------------------------------------------------------------------

    def _has(self, record: MachineRecord) -> bool:
        return not self._tags or self._tags.items() <= record.tags.items()

    async def _record(self, name: str) -> MachineRecord:
        record = await self.forge.record(self.account, name)
        if not self._has(record):
            raise MachineNotFound(f"there is no machine {name}")  # as of one that is not
        return record

    async def _check_still_there(self, id: MachineId, name: str) -> None:
        """Its tags may have changed. Raises MachineNotFound."""
        keeper = self.forge.keepers.get(id)
        record = keeper.dossier.record if keeper else await self.forge.store.machine(id)
        if record is not None and not self._has(record):
            raise MachineNotFound(f"there is no machine {name}")

    async def _keeper(self, name: str) -> Keeper:
        if self._tags and self._kept(name) is None:
            await self._record(name)  # before anything is woken
        return await self.forge.keeper(self.account, name)

    def _kept(self, name: str) -> Keeper | None:
        keeper = self.forge.kept(self.account, name)
        return keeper if keeper is not None and self._has(keeper.dossier.record) else None

    def _tagged(self, tags: Mapping[str, str]) -> dict[str, str]:
        """With the tags that this door is for. Raises Forbidden when others are asked for in their place."""
        if clash := [name for name, value in self._tags.items() if tags.get(name, value) != value]:
            raise Forbidden(f"this token is for machines with {clash[0]}={self._tags[clash[0]]} alone")
        return {**tags, **self._tags}

    # --- machines ------------------------------------------------------------------------------------------------------------------------

    async def create(self, wanted: NewMachine | None = None, *, key: str | None = None) -> MachineView:
        """Answers as soon as the machine is recorded; it is started behind the answer. The same again with the same key is the same machine."""
        self.forge.check_running()
        wanted = NewMachine() if wanted is None else wanted
        if not isinstance(wanted, NewMachine):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidInput(f"a new machine is described by NewMachine, not by {type(wanted).__name__}")
        if self._tags:
            wanted = replace(wanted, tags=self._tagged(requests.tags(wanted.tags or {}, self.forge.settings)))
            if wanted.from_snapshot is not None:
                await self._record(requests.snapshot_of(wanted.from_snapshot).machine)
        make = creation.create if wanted.from_snapshot is None else forks.create_from
        record = await make(self.forge, wanted, self.account, requests.key(key))
        return self._now(record)

    async def get(self, name: str) -> MachineView:
        record = await self._record(name)
        return self._now(record)

    async def list(self, query: MachineQuery) -> Sequence[MachineView]:
        requests.query(query)
        if any(query.tags.get(name, value) != value for name, value in self._tags.items()):
            return []
        query = replace(query, account=self.account, tags={**query.tags, **self._tags})
        return [self._now(record) for record in await self.forge.store.machines(query)]

    async def update(
        self,
        name: str,
        *,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idle_seconds: float | None = None,
        history: History | None = None,
        durability: Durability | None = None,
        egress: PolicyChange | None = None,
        expires_at: float | Literal["keep"] | None = "keep",
    ) -> MachineView:
        """What is not named stays. `expires_at` None: never."""
        s = self.forge.settings
        fields: dict[str, Any] = {}
        if tags is not None:
            fields["tags"] = self._tagged(requests.tags(tags, s))
        if metadata is not None:
            fields["metadata"] = requests.metadata(metadata, s)
        if idle_seconds is not None:
            fields["idle_seconds"] = requests.seconds("idle_seconds", idle_seconds, 0.01, s.idle_seconds_max)
        if history is not None:
            fields["history"] = requests.one_of("history", history, History)
        if durability is not None:
            fields["durability"] = requests.one_of("durability", durability, Durability)
        if expires_at != "keep":
            fields["expires_at"] = requests.expires_at(expires_at, time.time())
        keeper = await self._keeper(name)
        with keeper.pinned():
            async with keeper.dossier.changing:
                if egress is not None:
                    fields["egress"] = self.forge.doors.changed_policy(keeper.dossier.record.egress, egress)
                await to_its_end(keeper.dossier.write(set=fields, step="update", patient=False))
            keeper.look_again()
            if tags is not None:
                self.forge.readers.stir(keeper.id)  # those who are for other tags end
            if egress is not None and (incarnation := keeper.residency.housing.incarnation) is not None:
                incarnation.reconsider_egress()
        if fields.get("expires_at") is not None:
            self.forge.expiry.look_again()
        return self._view(keeper.dossier.present, keeper)

    async def egress_log(self, name: str, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        """What it has tried to reach, newest first."""
        return await self.forge.doors.log((await self._record(name)).id, before, limit)

    async def tell_surroundings(self) -> None:
        """Something of the world outside has changed for this account: those of its machines that are awake hear of it at once."""
        for keeper in self.forge.keepers.all():
            incarnation = keeper.residency.housing.incarnation
            if keeper.dossier.record.account == self.account and incarnation is not None:
                surroundings = await self.forge.doors.surroundings(keeper.dossier.record)
                if await incarnation.gate.enter():  # not in the middle of a save
                    try:
                        await incarnation.set_up(dict(surroundings.env), keeper.residency.housing.guest_limits(), surroundings.files)
                    except SandboxLost:
                        continue
                    finally:
                        incarnation.gate.leave()

    async def delete(self, name: str) -> None:
        """At once, whatever it is doing: what runs or waits ends as cancelled."""
        record = await self._record(name)
        await self.forge.delete(record)

    # --- instructions --------------------------------------------------------------------------------------------------------------------

    async def exec(
        self,
        name: str,
        code: str,
        *,
        timeout_seconds: float | None = None,
        interrupt: bool = False,
        key: str | None = None,
        env: Mapping[str, str] | None = None,
        functions: Sequence[str] | None = None,
    ) -> tuple[int, bool]:
        """Accepted: its number, and whether something was interrupted for it. The machine may still be asleep.

        `env` and `functions` (of the client's program, which answers their calls) are there for this instruction alone.
        """
        self.forge.check_running()
        key = requests.key(key)
        work = self._work(code, timeout_seconds, env, functions)
        keeper = await self._keeper(name)
        return await keeper.accept(work, key, interrupt=interrupt)

    def _work(self, code: str, seconds: float | None, env: Mapping[str, str] | None = None, functions: Sequence[str] | None = None) -> Work:
        settings = self.forge.settings
        wanted = settings.timeout_seconds if seconds is None else seconds
        return Work(
            requests.code(code, settings),
            requests.seconds("timeout_seconds", wanted, 0.001, settings.timeout_seconds_max),
            {} if env is None else requests.env(env, settings),
            [] if functions is None else requests.functions(functions),
        )

    async def answer(self, name: str, instruction: int, call: int, *, value: Any = None, error: str | None = None) -> None:
        """What a function of the client's program returned, or why it failed: once for each call. A sleeping machine is woken behind it."""
        self.forge.check_running()
        requests.whole("instruction", instruction, 0, INSTRUCTION_MAX, "")
        requests.whole("call", call, 0, INSTRUCTION_MAX, "")
        value, error = requests.answer(value, error)
        keeper = await self._keeper(name)
        await keeper.answer(Answered(instruction=instruction, call=call, value=value, error=error))

    async def result(self, name: str, instruction: int) -> Ended:
        """Waits for the end of an instruction."""
        requests.whole("instruction", instruction, 0, INSTRUCTION_MAX, "")
        keeper = await self._keeper(name)
        with keeper.pinned():
            return await keeper.end_of(instruction)

    async def run(self, name: str, code: str, *, timeout_seconds: float | None = None) -> Ended:
        """Exec, then its result."""
        self.forge.check_running()
        work = self._work(code, timeout_seconds)
        keeper = await self._keeper(name)
        with keeper.pinned():
            number, _ = await keeper.accept(work, None)
            return await keeper.end_of(number)

    async def instruction(self, name: str, instruction: int) -> Accepted:
        """How it was given."""
        requests.whole("instruction", instruction, 0, INSTRUCTION_MAX, "")
        found = await self.forge.store.instruction((await self._record(name)).id, instruction)
        if found is None or not isinstance(found[0], Accepted):
            raise InstructionNotFound(f"machine {name} has no instruction {instruction}")
        return found[0]

    async def instructions(self, name: str, after: int = -1, limit: int = 100) -> tuple[Sequence[tuple[Accepted, Ended | None]], bool]:
        """Those with a number above `after`, in their order, each with its end if it has one, and whether there are more.

        At most `limit`, and fewer when they are large; none only when there are none.
        """
        requests.whole("after", after, -1, INSTRUCTION_MAX, "")
        found, more = await self.forge.store.instructions((await self._record(name)).id, after, limit)
        return cast("Sequence[tuple[Accepted, Ended | None]]", found), more

    def running(self, name: str) -> Running | None:
        """The instruction whose turn it is now; None when there is none."""
        keeper = self._kept(name)
        return None if keeper is None or keeper.running is None else Running(keeper.running, keeper.waits)

    async def displayed(self, name: str, instruction: int) -> Sequence[Displayed]:
        """The rich output of an instruction, in order."""
        found = await self.forge.store.displayed((await self._record(name)).id, instruction)
        return [event for event in found if isinstance(event, Displayed)]

    async def interrupt(self, name: str, *, pending: bool = False, instruction: int | None = None) -> bool:
        """What runs, what waits behind it too, or one of them; True when there was something.

        Code may catch the first interrupt and go on. Who interrupts it again insists: if that does not end it, it is killed with its variables.
        """
        if instruction is not None:
            return await self._interrupt_one(name, instruction, pending=pending)
        if keeper := self._kept(name):
            return await keeper.interrupt(pending=pending)
        await self._record(name)
        return False  # nobody keeps it awake, so nothing runs

    async def _interrupt_one(self, name: str, number: int, *, pending: bool) -> bool:
        requests.whole("instruction", number, 0, INSTRUCTION_MAX, "")
        if pending:
            raise InvalidInput("name one instruction, or say pending for all that wait")
        keeper = self._kept(name)
        if keeper is not None and await keeper.interrupt_one(number):
            return True
        await self.instruction(name, number)  # raises InstructionNotFound
        return False

    async def read(self, name: str, after: int = START, *, follow: bool = False, instruction: int | None = None) -> AsyncIterator[Event]:
        """The tape after a position; with `follow` for as long as the machine lives, and has the tags that this door is for.

        Whoever reads for one `instruction` hears DiskFull when its end can only be recorded who knows when.
        """
        requests.whole("after", after, START, INSTRUCTION_MAX, "")
        record = await self._record(name)

        async def check() -> None:
            if self._tags:
                await self._check_still_there(record.id, name)
            if instruction is not None:
                self.check_recordable(name, instruction)

        async with contextlib.aclosing(self.forge.readers.read(record.id, Position(after), follow=follow, check=check)) as events:
            async for event in events:
                yield event

    def check_recordable(self, name: str, instruction: int) -> None:
        """Raises DiskFull when the end of this instruction has been waiting for room for long."""
        if keeper := self._kept(name):
            keeper.check_recordable(instruction)

    async def end_position(self, name: str) -> Position:
        """The last position on the tape."""
        if keeper := self._kept(name):
            return await keeper.dossier.end_position()
        return await self.forge.store.end_position((await self._record(name)).id)

    # --- the machine itself --------------------------------------------------------------------------------------------------------------

    async def hibernate(self, name: str) -> None:
        keeper = await self._keeper(name)
        await keeper.operate("hibernate", keeper.hibernate)

    async def wake(self, name: str) -> None:
        keeper = await self._keeper(name)
        await keeper.operate("wake", keeper.residency.ensure_awake)

    async def snapshot(self, name: str, snapshot_name: str | None = None) -> PointRecord:
        """A point to come back to. A named one is kept until it is forgotten or the machine is deleted."""
        label = requests.snapshot_name(snapshot_name)
        await creation.check_disk_room(self.forge.store, await self.forge.quota(self.account), self.account)
        keeper = await self._keeper(name)
        return await keeper.operate("snapshot", lambda: marks.snapshot(keeper, label, self.forge.settings.named_points_max))

    async def forget(self, name: str, snapshot: str) -> None:
        """Let a point go, by its id or name. What the machine itself needs stays, and only loses its name."""
        wanted = requests.snapshot(snapshot)
        keeper = await self._keeper(name)
        await keeper.operate("forget", lambda: marks.forget(keeper, wanted))

    async def points(self, name: str) -> Sequence[PointRecord]:
        return await self.forge.store.points((await self._record(name)).id)

    async def rollback(self, name: str, *, snapshot: str | None = None, instruction: int | None = None, discard: bool = False) -> RolledBack:
        """To a snapshot (id or name), to the state after an instruction, or with neither to the newest point. Undone by rolling back to `undo`.

        With `discard` a machine that is awake is not saved first: what is there now is gone. It is the way back of one that cannot be saved.
        """
        if instruction is not None:
            requests.whole("instruction", instruction, 0, INSTRUCTION_MAX, "")
        target = Target(None if snapshot is None else requests.snapshot(snapshot), instruction)
        keeper = await self._keeper(name)
        operate = keeper.discard if discard else keeper.operate
        return RolledBack(*await operate("rollback", lambda: keeper.residency.roll_back(target, discard=discard)))

    async def reset(self, name: str, *, discard: bool = False) -> SnapshotId | None:
        """Fresh from its image's template; returns the point that undoes it. `discard` as for `rollback`."""
        keeper = await self._keeper(name)
        operate = keeper.discard if discard else keeper.operate
        return await operate("reset", lambda: forks.reset(self.forge, keeper, discard=discard))

    async def fork(self, name: str, *, count: int = 1, names: Sequence[str] | None = None, key: str | None = None) -> Sequence[MachineView]:
        """New machines that go on from where this one is. However many, the source is stopped for one save only; a sleeping one is not woken.

        The same again with the same key are the same machines.
        """
        self.forge.check_running()
        wanted = self._fork_names(count, names)
        key = requests.key(key)
        keeper = await self._keeper(name)

        async def make(key: Key) -> Sequence[MachineRecord]:
            for taken in wanted:
                if wanted.count(taken) > 1 or await self.forge.store.find(self.account, taken):
                    raise NameTaken(f"there is a machine {taken} already")
            return await keeper.operate("fork", lambda: forks.fork(self.forge, keeper, wanted, key))

        request = [len(wanted), None if names is None else wanted]
        with keeper.pinned():  # a keeper whose machine has just gone to sleep would retire while the names are looked up
            records, _ = await self.forge.keys.once(self.account, f"fork {keeper.id}", key, request, make)
        return [self._now(record) for record in records]

    def _fork_names(self, count: int, names: Sequence[str] | None) -> list[MachineName]:
        if names is None:
            requests.whole("count", count, 1, self.forge.settings.forks_max, "forks")
            return [new_machine_name() for _ in range(count)]
        if isinstance(names, str) or not isinstance(names, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("names must be a list of names for the forks")
        requests.whole("the number of names", len(names), 1, self.forge.settings.forks_max, "forks")
        return [machine_name(n) for n in names]

    async def facts(self, name: str) -> Facts:
        """What is looked up for one machine, and would be too dear for a list of them."""
        record = await self._record(name)
        source = await self.forge.store.machine(record.source) if record.source else None
        points = await self.forge.store.points(record.id)
        return Facts(
            position=await self.forge.store.end_position(record.id),
            memory_bytes=await self.memory_bytes(name),
            disk_bytes=sum(point.size_bytes for point in points if point.reason != "template"),
            source=source.name if source is not None and source.deleted_at is None else None,
        )

    async def usage(self) -> Usage:
        """Of this account."""
        found = await self.forge.store.usage(self.account)
        states = by_state(found.residences)
        awake = sum(states[word] for word in ("creating", "waking", "ready", "hibernating"))
        return Usage(
            machines=sum(states.values()),
            awake=awake,
            asleep=states["asleep"],
            broken=states["broken"],
            instructions=found.instructions,
            runtime_ms=found.runtime_ms,
            disk_bytes=found.disk_bytes,
            egress_bytes=found.egress_bytes,
            awake_seconds=round(found.awake_ms / 1000, 3),
        )

    async def counts(self) -> Mapping[str, int]:
        """How many machines of all accounts there are in each state."""
        states = by_state(await self.forge.store.counts())
        busy = sum(keeper.turn is not Turn.IDLE and keeper.residency.housing.incarnation is not None for keeper in self.forge.keepers.all())
        states["busy"] = min(busy, states["ready"])  # the keepers may be a moment ahead of the store
        states["ready"] -= states["busy"]
        return states

    async def complete(self, name: str, code: str, cursor: int | None = None) -> Completion:
        """What could stand at `cursor` (the end), by what the live interpreter knows. A busy one is not asked; a sleeping machine is woken."""
        code = requests.code(code, self.forge.settings)
        at = len(code) if cursor is None else requests.whole("cursor", cursor, 0, len(code), "characters")
        keeper = await self._keeper(name)
        async with keeper.at_hand() as incarnation:
            if incarnation.line.protocol < 2:
                raise GuestTooOld(GUEST_TOO_OLD)
            told = await incarnation.complete(code, at)
        sound = told.start <= told.end <= len(code) and not told.busy
        return Completion(told.matches, told.start, told.end, False) if sound else Completion([], at, at, True)

    def files(self, name: str) -> MachineFiles:
        return MachineFiles(lambda: self._keeper(name))

    async def memory_bytes(self, name: str) -> int:
        """Of the host, now; 0 for one that sleeps."""
        keeper = self.forge.keepers.get((await self._record(name)).id)
        incarnation = keeper.residency.housing.incarnation if keeper else None
        return await incarnation.sandbox.memory_bytes() if incarnation else 0

    def _now(self, record: MachineRecord) -> MachineView:
        """Its keeper knows more than the store."""
        keeper = self.forge.keepers.get(record.id)
        return self._view(keeper.dossier.present if keeper else record, keeper)

    def _view(self, record: MachineRecord, keeper: Keeper | None) -> MachineView:
        turn = keeper.turn if keeper else Turn.IDLE
        return MachineView(record, state(Residence(record.residence), turn), keeper.pending if keeper else 0)


def by_state(residences: Mapping[str, int]) -> Counter[str]:
    """In the words that users see; those about to be gone aside."""
    states: Counter[str] = Counter()
    for residence, count in residences.items():
        states[state(Residence(residence), Turn.IDLE)] += count
    del states["deleted"]
    return states


__all__ = ["MachineName", "MachineView", "Machines", "RolledBack"]
