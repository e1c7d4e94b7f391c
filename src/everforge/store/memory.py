"""A store that forgets when its process ends: for tests, where it outlives the service as a database outlives a killed server."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from everforge.wire.errors import AccountNotFound, InvalidInput, KeyReused, MachineNotFound, NameTaken, WrongState
from everforge.wire.events import Accepted, Answered, Called, Displayed, Ended, Event, Output, Position, encode_body
from everforge.wire.ids import AccountId, MachineId, MachineName, SnapshotId

from . import tape
from .base import Change, KeyRecord, MachineQuery, MachineRecord, PointRecord, UsageRecord
from .memory_accounts import MemoryAccounts
from .memory_audit import MemoryAudit
from .memory_egress import MemoryEgress
from .memory_webhooks import MemoryWebhooks
from .quotas import UNLIMITED, Quota, check_new


@dataclass(slots=True)
class _Machine:
    record: MachineRecord
    floor: int  # no position below it will be given
    events: list[Event] = field(default_factory=list[Event])
    points: dict[SnapshotId, PointRecord] = field(default_factory=dict[SnapshotId, PointRecord])
    unended: dict[int, Accepted] = field(default_factory=dict[int, Accepted])
    ended: set[int] = field(default_factory=set[int])
    keys: set[str | None] = field(default_factory=set[str | None])
    purged: bool = False  # nobody sees it any more, but a fork's tape may begin with its own

    def append(self, placed: Sequence[Event]) -> None:
        self.events += placed
        for event in placed:
            if isinstance(event, Accepted):
                self.unended[event.instruction] = event
                self.keys.add(event.key)
            elif isinstance(event, Ended):
                self.unended.pop(event.instruction, None)
                self.ended.add(event.instruction)

    @property
    def next_position(self) -> int:
        last = self.events[-1] if self.events else None
        return max(self.floor, last.position + last.width if last else 0)


class MemoryStore:
    def __init__(self) -> None:
        self._machines: dict[MachineId, _Machine] = {}
        self._names: dict[tuple[AccountId, MachineName], MachineId] = {}  # of the living
        self.egress = MemoryEgress()
        self.accounts = MemoryAccounts(lambda account: any(owner == account for owner, _ in self._names), self.egress.forget_account)
        self.audit = MemoryAudit()
        self.webhooks = MemoryWebhooks()
        self._keys: dict[tuple[AccountId, str, str], KeyRecord] = {}
        self._sums: dict[AccountId, tuple[int, int]] = {}  # instructions, and how long they ran
        self._awake_ms: Counter[AccountId] = Counter()
        self._egress_bytes: Counter[AccountId] = Counter()
        self._unclean = False
        self.closed = False

    async def create(
        self,
        record: MachineRecord,
        events: Sequence[Event] = (),
        points: Sequence[PointRecord] = (),
        key: KeyRecord | None = None,
        quota: Quota = UNLIMITED,
    ) -> Sequence[Event]:
        await self._check_quota(record.account, quota, 1)
        if key is not None and _key(key) in self._keys:
            raise KeyReused("the idempotency key was used already")
        if record.source is not None:
            self._get(record.source)
        if self.accounts.is_deleted(record.account):
            raise AccountNotFound("the account was deleted")
        if record.id in self._machines or (record.deleted_at is None and _owned(record) in self._names):
            raise NameTaken(f"there is a machine named {record.name} already")
        tape.weigh(events)
        machine = _Machine(record, 0 if record.source_position is None else record.source_position + 1)
        placed, _ = tape.place(events, machine.next_position)
        _check_instructions(machine, placed)
        _check_points(record.id, points)
        machine.append(placed)
        machine.points = {point.snapshot: point for point in points}
        self._machines[record.id] = machine
        self._count(record.account, placed)
        if record.deleted_at is None:
            self._names[_owned(record)] = record.id
        if key is not None:
            self._keys[_key(key)] = key
        return placed

    async def create_together(
        self, machines: Sequence[tuple[MachineRecord, Sequence[Event], PointRecord]], key: KeyRecord | None = None, quota: Quota = UNLIMITED
    ) -> None:
        await self._check_quota(machines[0][0].account, quota, len(machines))
        before = dict(self._machines), dict(self._names), dict(self._keys)
        try:
            for number, (record, events, point) in enumerate(machines):
                await self.create(record, events, [point], None if number else key)
        except BaseException:
            self._machines, self._names, self._keys = before
            raise

    async def _check_quota(self, account: AccountId, quota: Quota, adding: int) -> None:
        """Nobody else does anything between this and what it is for: there is no wait in it."""
        used = await self.usage(account)
        check_new(quota, sum(used.residences.values()), adding, used.disk_bytes)

    async def made_with_key(self, account: AccountId, route: str, key: str) -> KeyRecord | None:
        return self._keys.get((account, route, key))

    async def prune_keys(self, before: float) -> None:
        self._keys = {name: key for name, key in self._keys.items() if key.created_at >= before}

    async def commit(self, change: Change) -> Sequence[Event]:
        machine = self._get(change.machine)
        tape.check_settable(change.set)
        tape.weigh(change.events)
        before, after = machine.record, replace(machine.record, **change.set)
        owner = self._names.get(_owned(after))
        if after.deleted_at is None and owner not in (None, after.id):
            raise NameTaken(f"there is a machine named {after.name} already")
        placed, _ = tape.place(change.events, machine.next_position)
        _check_instructions(machine, placed)
        _check_points(change.machine, change.add_points)
        # From here on nothing fails: all of it happens, or none did.
        if before.deleted_at is None:
            self._names.pop(_owned(before), None)
        if after.deleted_at is None:
            self._names[_owned(after)] = after.id
        machine.record = after
        machine.append(placed)
        self._count(after.account, placed)
        self._awake_ms[after.account] += change.awake_ms
        for snapshot in change.drop_points:
            machine.points.pop(snapshot, None)
        machine.points.update((point.snapshot, point) for point in tape.placed_points(change.add_points, machine.next_position - 1))
        return placed

    async def machine(self, id: MachineId) -> MachineRecord | None:
        machine = self._machines.get(id)
        return machine.record if machine and not machine.purged else None

    async def find(self, account: AccountId, name: MachineName) -> MachineRecord | None:
        id = self._names.get((account, name))
        return None if id is None else self._machines[id].record

    async def machines(self, query: MachineQuery) -> Sequence[MachineRecord]:
        tape.check_limit(query.limit)
        found = [machine.record for machine in self._machines.values() if not machine.purged and tape.matches(machine.record, query)]
        found.sort(key=lambda record: (record.created_at, record.id), reverse=True)
        return found[: query.limit]

    async def expiring(self, before: float, limit: int) -> Sequence[MachineRecord]:
        living = [m.record for m in self._machines.values() if m.record.deleted_at is None]
        found = [(record.expires_at, record.id, record) for record in living if record.expires_at is not None and record.expires_at < before]
        return [record for _, _, record in sorted(found, key=lambda f: f[:2])[:limit]]

    async def usage(self, account: AccountId) -> UsageRecord:
        mine = [m for m in self._machines.values() if m.record.account == account]
        instructions, runtime_ms = self._sums.get(account, (0, 0))
        living = [m.record for m in mine if m.record.deleted_at is None]
        now = time.time()
        return UsageRecord(
            residences=Counter(record.residence for record in living),
            instructions=instructions,
            runtime_ms=runtime_ms,
            egress_bytes=self._egress_bytes[account],
            awake_ms=self._awake_ms[account] + sum(tape.awake_ms(record.awake_since, now) for record in living),
            disk_bytes=sum(point.size_bytes for m in mine for point in m.points.values()),
        )

    async def add_egress(self, account: AccountId, egress_bytes: int) -> None:
        self._egress_bytes[account] += egress_bytes

    async def counts(self) -> Mapping[str, int]:
        return Counter(m.record.residence for m in self._machines.values() if m.record.deleted_at is None)

    def _count(self, account: AccountId, placed: Sequence[Event]) -> None:
        instructions, runtime_ms = self._sums.get(account, (0, 0))
        instructions += sum(isinstance(event, Accepted) for event in placed)
        runtime_ms += sum(tape.counted_ms(event) for event in placed if isinstance(event, Ended))
        self._sums[account] = instructions, runtime_ms

    async def events(self, machine: MachineId, after: Position, limit: int) -> Sequence[Event]:
        tape.check_limit(limit)
        cuts = (tape.cut(event, after, upto) for part, upto in reversed(self._lineage(machine)) for event in part.events)
        return [event for event in cuts if event is not None][:limit]

    async def end_position(self, machine: MachineId) -> Position:
        return Position(self._get(machine).next_position - 1)

    async def received(self, machine: MachineId, epoch: int) -> int:
        return max((event.frame for event in self._own(machine) if event.epoch == epoch), default=0)

    async def unended(self, machine: MachineId) -> Sequence[Event]:
        found = self._machines.get(machine)
        return [*found.unended.values()] if found else []

    async def machines_with_unended(self) -> Sequence[MachineId]:
        return [id for id, machine in self._machines.items() if machine.record.deleted_at is None and await self.unended(id)]

    async def instruction(self, machine: MachineId, instruction: int) -> tuple[Event, Event | None] | None:
        accepted: Event | None = None
        ended: Event | None = None
        for part, upto in self._lineage(machine) if machine in self._machines else []:
            for event in part.events:
                if upto is None or event.position <= upto:
                    if isinstance(event, Accepted) and event.instruction == instruction:
                        accepted = accepted or event
                    elif isinstance(event, Ended) and event.instruction == instruction:
                        ended = ended or event
        return None if accepted is None else (accepted, ended)

    async def instructions(self, machine: MachineId, after: int, limit: int) -> tuple[Sequence[tuple[Event, Event | None]], bool]:
        numbers = {e.instruction for e in self._with_inherited(machine) if isinstance(e, Accepted) and e.instruction > after}
        found: list[tuple[Event, Event | None]] = []
        size_bytes = 0
        for number in sorted(numbers):
            if len(found) >= limit or size_bytes > tape.INSTRUCTIONS_BYTES_MAX:
                return found, True
            if pair := await self.instruction(machine, number):
                found.append(pair)
                size_bytes += sum(len(encode_body(event)) for event in pair if event)
        return found, False

    async def displayed(self, machine: MachineId, instruction: int) -> Sequence[Event]:
        return [e for e in self._with_inherited(machine) if isinstance(e, Displayed) and e.instruction == instruction]

    async def calls(self, machine: MachineId, instruction: int) -> Mapping[int, Position | None]:
        own = [e for e in self._own(machine) if isinstance(e, (Called, Answered)) and e.instruction == instruction]
        return tape.calls((e.call, e.kind, e.position) for e in own)

    def _with_inherited(self, machine: MachineId) -> list[Event]:
        found: list[Event] = []
        if machine in self._machines:
            for part, upto in reversed(list(self._lineage(machine))):
                found += [e for e in part.events if upto is None or e.position <= upto]
        return found

    async def outputs(self, machine: MachineId, instruction: int | None) -> int:
        for part, upto in self._lineage(machine) if machine in self._machines else []:
            for event in reversed(part.events):
                kept = tape.cut(event, -1, upto) if isinstance(event, Output) and event.instruction == instruction else None
                if isinstance(kept, Output):
                    return kept.first_seq + kept.width
        return 0

    async def accepted_with_key(self, machine: MachineId, key: str) -> Event | None:
        return next((event for event in self._own(machine) if isinstance(event, Accepted) and event.key == key), None)

    async def points(self, machine: MachineId) -> Sequence[PointRecord]:
        found = self._machines.get(machine)
        points = found.points.values() if found else ()
        return sorted(points, key=lambda point: (point.position, point.created_at, point.snapshot))

    async def referenced_snapshots(self) -> frozenset[SnapshotId]:
        living = [machine for machine in self._machines.values() if machine.record.deleted_at is None]
        heads = {machine.record.head for machine in living if machine.record.head is not None}
        return frozenset(heads.union(*(machine.points for machine in living)))

    async def snapshot_in_use(self, snapshot: SnapshotId) -> bool:
        return snapshot in await self.referenced_snapshots()

    async def is_head(self, snapshot: SnapshotId) -> bool:
        return any(m.record.head == snapshot and m.record.deleted_at is None for m in self._machines.values())

    async def images_in_use(self) -> frozenset[str]:
        return frozenset(m.record.image for m in self._machines.values() if m.record.deleted_at is None)

    async def purge(self, machine: MachineId) -> None:
        found = self._machines.get(machine)
        if found is None:
            return
        if found.record.deleted_at is None:
            raise WrongState(f"machine {machine} is not deleted: it cannot be forgotten")
        found.purged = True
        self._remove_purged()

    async def purge_deleted(self, before: float) -> int:
        old = [m for m in self._machines.values() if m.record.deleted_at is not None and m.record.deleted_at < before and not m.purged]
        for machine in old:
            machine.purged = True
        self._remove_purged()
        return len(old)

    def _remove_purged(self) -> None:
        """As far as no fork's tape begins with theirs; a fork that goes may let its source go."""
        while gone := [id for id, m in self._machines.items() if m.purged and all(other.record.source != id for other in self._machines.values())]:
            for id in gone:
                del self._machines[id]
                self.egress.forget(id)

    async def unclean_boot(self) -> bool:
        unclean, self._unclean = self._unclean, False
        return unclean

    async def close(self) -> None:
        self.closed = True

    def power_cut(self) -> None:
        """For tests: what the next start finds after the computer went down. (Nothing is lost here but the numbers.)"""
        self._unclean = True
        for machine in self._machines.values():
            accepted = [event.instruction for event in machine.events if isinstance(event, Accepted)]
            machine.floor = machine.next_position + tape.POSITION_JUMP
            next_instruction = max([machine.record.next_instruction, *(number + 1 for number in accepted)]) + tape.INSTRUCTION_JUMP
            machine.record = replace(machine.record, next_instruction=next_instruction)

    def _get(self, id: MachineId) -> _Machine:
        machine = self._machines.get(id)
        if machine is None or machine.purged:
            raise MachineNotFound(f"there is no machine {id}")
        return machine

    def _own(self, id: MachineId) -> list[Event]:
        machine = self._machines.get(id)
        return machine.events if machine else []

    def _lineage(self, id: MachineId) -> list[tuple[_Machine, int | None]]:
        """The machine and those its tape begins with, youngest first, each with the last position that is shared."""
        machine = self._get(id)
        lineage: list[tuple[_Machine, int | None]] = [(machine, None)]
        upto: int | None = None
        while machine.record.source is not None and machine.record.source_position is not None:
            upto = machine.record.source_position if upto is None else min(upto, machine.record.source_position)
            machine = self._machines[machine.record.source]
            lineage.append((machine, upto))
        return lineage


def _owned(record: MachineRecord) -> tuple[AccountId, MachineName]:
    return record.account, record.name


def _key(key: KeyRecord) -> tuple[AccountId, str, str]:
    return key.account, key.route, key.key


def _check_instructions(machine: _Machine, placed: Sequence[Event]) -> None:
    """Each is accepted once and ends once."""
    unended, ended = set(machine.unended), set[int]()
    for event in placed:
        if isinstance(event, Accepted):
            if event.key is not None and event.key in machine.keys:
                raise KeyReused(f"the idempotency key {event.key!r} is on the tape already")
            if event.instruction in unended:
                raise WrongState("an instruction of that number was accepted already")
            unended.add(event.instruction)
        elif isinstance(event, Ended):
            if event.instruction in machine.ended or event.instruction in ended:
                raise WrongState(f"instruction {event.instruction} of machine {machine.record.id} has ended already")
            unended.discard(event.instruction)
            ended.add(event.instruction)


def _check_points(machine: MachineId, points: Sequence[PointRecord]) -> None:
    if any(point.machine != machine for point in points):
        raise InvalidInput(f"a point of another machine cannot be added to {machine}")
