"""What a write does to the tables. Runs in the writer's thread, inside a transaction that the writer owns."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from everforge.store import tape
from everforge.store.base import Change, MachineRecord, PointRecord
from everforge.store.quotas import Quota, check_new
from everforge.wire.errors import AccountNotFound, InvalidInput, KeyReused, MachineNotFound, WrongState
from everforge.wire.events import Accepted, Ended, Event
from everforge.wire.ids import MachineId

from .rows import column_values, event_row, point_row, record_values
from .statements import Statements
from .tables import usage

KNOWN_MAX = 200_000  # machines whose next position is kept in memory; beyond that they are looked up again
GROUP_BYTES_MAX = 4 * 1024 * 1024  # entries in one transaction: a tenth of a second for a slow disk
SUMS = len(usage.c) - 1  # columns of it beside the account
UPDATES_MAX = 512  # different sets of fields; our own code has a few dozen


class Changes:
    """Knows the next position of every machine that it has seen. What a transaction gave out counts only when the transaction does: `keep`."""

    def __init__(self, connection: sqlite3.Connection, statements: Statements) -> None:
        self.connection = connection
        self._statements = statements
        self._known: dict[MachineId, int] = {}
        self._staged: dict[MachineId, int] = {}
        self._updates: dict[tuple[str, ...], str] = {}
        self._accounts: dict[MachineId, str] = {}
        self._sums: dict[str, list[int]] = {}  # by account: what this transaction adds to the columns of `usage`
        self.positions = 0  # given out by this transaction, and
        self.instructions = 0  # accepted in it, and
        self.size_bytes = 0  # of the entries

    def keep(self) -> None:
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        self._known.update(self._staged)
        self.drop()

    def drop(self) -> None:
        self._staged.clear()
        self._sums.clear()
        self.positions = self.instructions = self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Enough for one transaction."""
        return self.size_bytes > GROUP_BYTES_MAX or self.positions > tape.CHANGE_POSITIONS_MAX or self.instructions > tape.CHANGE_INSTRUCTIONS_MAX

    def finish(self) -> None:
        """Before the commit: what it adds to the usage of accounts, once for each of them."""
        if self._sums:
            self.connection.executemany(self._statements.add_usage, [(account, *sums) for account, sums in self._sums.items()])

    def forget(self, machine: MachineId) -> None:
        """Look it up again the next time."""
        self._known.pop(machine, None)
        self._staged.pop(machine, None)
        self._accounts.pop(machine, None)

    def check_quota(self, account: str, quota: Quota, adding: int) -> None:
        """Before anything is written: nobody else writes in between, so that two at once never pass a quota of one."""
        if quota.machines or quota.disk_mb:
            machines = self.connection.execute(self._statements.count_machines, {"account": account}).fetchone()[0]
            used = self.connection.execute(self._statements.disk_of_account, {"account": account}).fetchone()
            check_new(quota, machines, adding, used[0] if used else 0)

    def create(self, record: MachineRecord, events: Sequence[Event], points: Sequence[PointRecord]) -> list[Event]:
        if record.source is not None:
            self._check_source(record.source)
        if self.connection.execute(self._statements.account_is_gone, {"account": record.account}).fetchone():
            raise AccountNotFound("the account was deleted")
        self.connection.execute(self._statements.insert_machine, record_values(record))
        if record.tags:
            self._insert_tags(record.id, record.tags, record.account, record.created_at)
        self._add_points(record.id, points)
        return self._append(record.id, events, 0 if record.source_position is None else record.source_position + 1)

    def commit(self, change: Change) -> list[Event]:
        machine = change.machine
        self._check_keys(machine, change.events)
        position = self._staged.get(machine)
        if position is None:
            position = self._next_position(machine)
        placed = self._append(machine, change.events, position) if change.events else []
        if change.set:
            self._set(machine, change.set)
        if change.drop_points:
            self._count(machine, disk_bytes=-self._remove_points(machine, change.drop_points))
        if change.add_points:
            self._add_points(machine, tape.placed_points(change.add_points, self._staged.get(machine, position) - 1))
        if change.awake_ms:
            self._count(machine, awake_ms=change.awake_ms)
        return placed

    def _check_keys(self, machine: MachineId, events: Sequence[Event]) -> None:
        """Before anything is written: the writer counts on that, and does not undo what others have written in the same transaction."""
        keys = [event.key for event in events if isinstance(event, Accepted) and event.key is not None]
        for key in keys:
            if self.connection.execute(self._statements.with_key, {"machine": machine, "key": key}).fetchone():
                raise KeyReused(f"the idempotency key {key!r} is on the tape already")

    def _next_position(self, machine: MachineId) -> int:
        known = self._known.get(machine)
        return next_position(self.connection, self._statements, machine) if known is None else known

    def _append(self, machine: MachineId, events: Sequence[Event], position: int) -> list[Event]:
        positions, instructions = tape.weigh(events)
        placed, after = tape.place(events, position)
        try:
            rows = [event_row(machine, event) for event in placed]
        except (TypeError, ValueError, RecursionError) as e:
            raise InvalidInput(f"an entry of the tape cannot be written as JSON: {e}") from e
        self.connection.executemany(self._statements.insert_event, rows)
        runtime_ms = 0
        for event in placed:
            if isinstance(event, Accepted):
                self.connection.execute(self._statements.insert_unended, (machine, event.instruction, event.position))
            elif isinstance(event, Ended):
                self._end(machine, event)
                runtime_ms += tape.counted_ms(event)
        self._count(machine, instructions=instructions, runtime_ms=runtime_ms)
        self._staged[machine] = after
        self.positions += positions
        self.instructions += instructions
        self.size_bytes += sum(len(row[-1]) for row in rows)
        return placed

    def _end(self, machine: MachineId, event: Ended) -> None:
        of_it = {"machine": machine, "instruction": event.instruction}
        if self.connection.execute(self._statements.delete_unended, of_it).rowcount:
            return
        # Not open here. It may be one that the source of a fork left open, but it must not end a second time.
        found = self.connection.execute(self._statements.first_of_instruction, {**of_it, "kind": "ended", "upto": event.position - 1}).fetchone()
        if found:
            raise WrongState(f"instruction {event.instruction} of machine {machine} has ended already")

    def _set(self, machine: MachineId, values: Mapping[str, Any]) -> None:
        names = tuple(values)
        statement = self._updates.get(names)
        if statement is None:
            tape.check_settable(names)
            if len(self._updates) >= UPDATES_MAX:
                self._updates.clear()
            statement = self._updates[names] = self._statements.update_machine(names)
        columns = column_values(values)
        columns["machine"] = machine
        self.connection.execute(statement, columns)
        if "tags" in values:
            self.connection.execute(self._statements.delete_tags, {"machine": machine})
            account, created_at = self.connection.execute(self._statements.owner, {"machine": machine}).fetchone()
            self._insert_tags(machine, values["tags"], account, created_at)

    def _insert_tags(self, machine: MachineId, tags: Mapping[str, str], account: str, created_at: float) -> None:
        self.connection.executemany(self._statements.insert_tag, [(machine, key, value, account, created_at) for key, value in tags.items()])

    def _add_points(self, machine: MachineId, points: Sequence[PointRecord]) -> None:
        if any(point.machine != machine for point in points):
            raise InvalidInput(f"a point of another machine cannot be added to {machine}")
        removed_bytes = self._remove_points(machine, [point.snapshot for point in points])
        self.connection.executemany(self._statements.insert_point, [point_row(point) for point in points])
        self._count(machine, disk_bytes=sum(point.size_bytes for point in points) - removed_bytes)

    def _remove_points(self, machine: MachineId, snapshots: Sequence[str]) -> int:
        """How many bytes of them there were."""
        found = [self.connection.execute(self._statements.delete_point, {"machine": machine, "snapshot": s}).fetchall() for s in snapshots]
        return sum(size_bytes for rows in found for (size_bytes,) in rows)

    def _count(self, machine: MachineId, *, instructions: int = 0, runtime_ms: int = 0, disk_bytes: int = 0, awake_ms: int = 0) -> None:
        if instructions or runtime_ms or disk_bytes or awake_ms:
            sums = self._sums.setdefault(self._account(machine), [0] * SUMS)
            sums[0] += instructions
            sums[1] += runtime_ms
            sums[2] += disk_bytes
            sums[4] += awake_ms

    def count_egress(self, account: str, egress_bytes: int) -> None:
        self._sums.setdefault(account, [0] * SUMS)[3] += egress_bytes

    def _account(self, machine: MachineId) -> str:
        account = self._accounts.get(machine)
        if account is None:
            if len(self._accounts) > KNOWN_MAX:
                self._accounts.clear()
            account = self._accounts[machine] = self.connection.execute(self._statements.owner, {"machine": machine}).fetchone()[0]
        return account

    def _check_source(self, source: MachineId) -> None:
        found = self.connection.execute(self._statements.counters, {"machine": source}).fetchone()
        if found is None:
            raise MachineNotFound(f"there is no machine {source} to fork")


def next_position(connection: sqlite3.Connection, statements: Statements, machine: MachineId) -> int:
    found = connection.execute(statements.counters, {"machine": machine}).fetchone()
    if found is None:
        raise MachineNotFound(f"there is no machine {machine}")
    floor, source_position = found
    inherited = 0 if source_position is None else source_position + 1
    last = connection.execute(statements.last_event, {"machine": machine}).fetchone()
    return max(floor, inherited, last[0] + last[1] if last else 0)
