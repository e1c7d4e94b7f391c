"""What a read does: one function for each question, on a reader's connection, inside one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from everforge.store import tape
from everforge.store.base import MachineRecord, PointRecord
from everforge.wire.errors import MachineNotFound
from everforge.wire.events import Event, Output, Position
from everforge.wire.ids import AccountId, MachineId, MachineName, SnapshotId

from .changes import next_position
from .rows import to_event, to_point, to_record
from .statements import Statements

NO_END = 2**63 - 1


class Queries:
    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def machine(self, connection: sqlite3.Connection, id: MachineId) -> MachineRecord | None:
        row = connection.execute(self._statements.record_by_id, {"machine": id}).fetchone()
        return to_record(row) if row else None

    def find(self, connection: sqlite3.Connection, account: AccountId, name: MachineName) -> MachineRecord | None:
        row = connection.execute(self._statements.record_by_name, {"account": account, "name": name}).fetchone()
        return to_record(row) if row else None

    def expiring(self, connection: sqlite3.Connection, before: float, limit: int) -> list[MachineRecord]:
        return [to_record(row) for row in connection.execute(self._statements.expiring, {"before": before, "limit": limit})]

    def events(self, connection: sqlite3.Connection, machine: MachineId, after: Position, limit: int) -> list[Event]:
        found: list[Event] = []
        size_bytes = 0
        # Oldest first: the tape begins with the oldest ancestor's. Those that end at or before `after` are passed over without a look.
        for owner, upto in reversed([part for part in self._lineage(connection, machine) if part[1] > after]):
            wanted = {"machine": owner, "after": after, "upto": upto, "limit": limit - len(found) + 1}  # the first may lie wholly before
            for row in connection.execute(self._statements.tape, wanted):
                event = tape.cut(to_event(row), after, upto)
                if event is not None:
                    found.append(event)
                    size_bytes += tape.read_bytes(event, len(row[1]))
                if len(found) >= limit or size_bytes > tape.READ_BYTES_MAX:
                    return found
        return found

    def end_position(self, connection: sqlite3.Connection, machine: MachineId) -> Position:
        return Position(next_position(connection, self._statements, machine) - 1)

    def received(self, connection: sqlite3.Connection, machine: MachineId, epoch: int) -> int:
        return connection.execute(self._statements.received, {"machine": machine, "epoch": epoch}).fetchone()[0] or 0

    def unended(self, connection: sqlite3.Connection, machine: MachineId) -> list[Event]:
        return [to_event(row) for row in connection.execute(self._statements.unended, {"machine": machine})]

    def machines_with_unended(self, connection: sqlite3.Connection) -> list[MachineId]:
        return [MachineId(id) for (id,) in connection.execute(self._statements.with_unended)]

    def instruction(self, connection: sqlite3.Connection, machine: MachineId, instruction: int) -> tuple[Event, Event | None] | None:
        accepted, ended = self._first(connection, machine, instruction, "accepted"), self._first(connection, machine, instruction, "ended")
        return None if accepted is None else (to_event(accepted), to_event(ended) if ended else None)

    def instructions(
        self, connection: sqlite3.Connection, machine: MachineId, after: int, limit: int
    ) -> tuple[list[tuple[Event, Event | None]], bool]:
        numbers: set[int] = set()
        for owner, upto in self._known_lineage(connection, machine):
            wanted = {"machine": owner, "instruction": after, "upto": upto, "limit": limit + 1}
            numbers.update(number for (number,) in connection.execute(self._statements.instructions_after, wanted))
        found: list[tuple[Event, Event | None]] = []
        size_bytes = 0
        for number in sorted(numbers):
            if len(found) >= limit or size_bytes > tape.INSTRUCTIONS_BYTES_MAX:
                return found, True
            accepted, ended = self._first(connection, machine, number, "accepted"), self._first(connection, machine, number, "ended")
            if accepted is not None:
                found.append((to_event(accepted), to_event(ended) if ended else None))
                size_bytes += len(accepted[1]) + (len(ended[1]) if ended else 0)
        return found, False

    def displayed(self, connection: sqlite3.Connection, machine: MachineId, instruction: int) -> list[Event]:
        found: list[Event] = []
        size_bytes = 0
        for owner, upto in reversed(list(self._known_lineage(connection, machine))):
            wanted = {"machine": owner, "instruction": instruction, "kind": "displayed", "upto": upto}
            for row in connection.execute(self._statements.all_of_instruction, wanted):
                found.append(to_event(row))
                size_bytes += len(row[1])
                if size_bytes > tape.DISPLAYED_BYTES_MAX:
                    return found
        return found

    def calls(self, connection: sqlite3.Connection, machine: MachineId, instruction: int) -> dict[int, Position | None]:
        return tape.calls(connection.execute(self._statements.calls_of_instruction, {"machine": machine, "instruction": instruction}))

    def outputs(self, connection: sqlite3.Connection, machine: MachineId, instruction: int | None) -> int:
        statement = self._statements.last_output_outside if instruction is None else self._statements.last_of_instruction
        for owner, upto in self._known_lineage(connection, machine):
            wanted = {"machine": owner, "upto": upto, "instruction": instruction, "kind": "output"}
            row = connection.execute(statement, wanted).fetchone()
            last = tape.cut(to_event(row), -1, upto) if row else None
            if isinstance(last, Output):
                return last.first_seq + last.width
        return 0

    def accepted_with_key(self, connection: sqlite3.Connection, machine: MachineId, key: str) -> Event | None:
        row = connection.execute(self._statements.with_key, {"machine": machine, "key": key}).fetchone()
        return to_event(row) if row else None

    def points(self, connection: sqlite3.Connection, machine: MachineId) -> list[PointRecord]:
        return [to_point(row) for row in connection.execute(self._statements.points, {"machine": machine})]

    def referenced_snapshots(self, connection: sqlite3.Connection) -> frozenset[SnapshotId]:
        statements = (self._statements.heads, self._statements.point_snapshots)
        return frozenset(SnapshotId(snapshot) for statement in statements for (snapshot,) in connection.execute(statement))

    def snapshot_in_use(self, connection: sqlite3.Connection, snapshot: SnapshotId) -> bool:
        statements = (self._statements.head_in_use, self._statements.point_in_use)
        return any(connection.execute(statement, {"snapshot": snapshot}).fetchone() for statement in statements)

    def is_head(self, connection: sqlite3.Connection, snapshot: SnapshotId) -> bool:
        return connection.execute(self._statements.head_in_use, {"snapshot": snapshot}).fetchone() is not None

    def images_in_use(self, connection: sqlite3.Connection) -> frozenset[str]:
        return frozenset(image for (image,) in connection.execute(self._statements.images))

    def _first(self, connection: sqlite3.Connection, machine: MachineId, instruction: int, kind: str) -> Sequence[Any] | None:
        for owner, upto in self._known_lineage(connection, machine):
            wanted = {"machine": owner, "instruction": instruction, "kind": kind, "upto": upto}
            row = connection.execute(self._statements.first_of_instruction, wanted).fetchone()
            if row:
                return row
        return None

    def _known_lineage(self, connection: sqlite3.Connection, machine: MachineId) -> Iterator[tuple[MachineId, int]]:
        """The same, and nothing for a machine that is not there."""
        try:
            yield from self._lineage(connection, machine)
        except MachineNotFound:
            return

    def _lineage(self, connection: sqlite3.Connection, machine: MachineId) -> Iterator[tuple[MachineId, int]]:
        """The machine and those that its tape begins with, youngest first, each with the last position that is shared."""
        upto = NO_END
        while True:
            found = connection.execute(self._statements.source, {"machine": machine}).fetchone()
            # One that was purged is nobody's any more, but it can still be the beginning of a fork's tape.
            if found is None or (upto == NO_END and found[2] is not None):
                raise MachineNotFound(f"there is no machine {machine}")
            yield machine, upto
            source, source_position, _ = found
            if source is None or source_position is None:
                return
            machine, upto = source, min(upto, source_position)
