"""Removes deleted machines for good, a little at a time, so that everyone else's writes go on in between."""

from __future__ import annotations

import time

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from everforge.wire.errors import WrongState
from everforge.wire.ids import MachineId

from .changes import Changes
from .statements import compile_text
from .tables import egress_attempts, events, machine_tags, machines, points, unended

STEP_EVENTS = 500  # a few milliseconds of the writer's time


class Purging:
    """A machine that is asked to go is marked first: from then on nobody sees it or forks it. Its rows go when no fork's tape begins with its own."""

    def __init__(self, dialect: Dialect) -> None:
        machine = sa.bindparam("machine", type_=sa.Text)
        child = machines.alias("child")
        has_fork = sa.select(child.c.id).where(child.c.source == machines.c.id).exists()
        self._state = compile_text(dialect, sa.select(machines.c.deleted_at).where(machines.c.id == machine))
        self._mark = compile_text(dialect, sa.update(machines).where(machines.c.id == machine).values(purged_at=sa.bindparam("now")))
        self._old = compile_text(
            dialect, sa.select(machines.c.id).where(machines.c.deleted_at < sa.bindparam("before"), machines.c.purged_at.is_(None)).limit(STEP_EVENTS)
        )
        self._next = compile_text(dialect, sa.select(machines.c.id).where(machines.c.purged_at.is_not(None), ~has_fork).limit(1))
        step = sa.select(events.c.position).where(events.c.machine == machine).order_by(events.c.position).limit(STEP_EVENTS).subquery()
        self._remove_events = compile_text(
            dialect,
            sa.delete(events).where(events.c.machine == machine, events.c.position <= sa.select(sa.func.max(step.c.position)).scalar_subquery()),
        )
        self._remove_rest = [
            compile_text(dialect, sa.delete(table).where(table.c.machine == machine)) for table in (machine_tags, unended, points, egress_attempts)
        ]
        self._remove_machine = compile_text(dialect, sa.delete(machines).where(machines.c.id == machine))

    def mark(self, changes: Changes, machine: MachineId) -> None:
        found = changes.connection.execute(self._state, {"machine": machine}).fetchone()
        if found is None:
            return
        if found[0] is None:
            raise WrongState(f"machine {machine} is not deleted: it cannot be forgotten")
        self._hide(changes, machine)

    def mark_old(self, changes: Changes, deleted_before: float) -> int:
        """Some of those deleted before that time; returns how many."""
        found = changes.connection.execute(self._old, {"before": deleted_before}).fetchall()
        for (machine,) in found:
            self._hide(changes, MachineId(machine))
        return len(found)

    def remove_some(self, changes: Changes) -> bool:
        """One step; False when nothing is left to do."""
        found = changes.connection.execute(self._next).fetchone()
        if found is None:
            return False
        machine = {"machine": found[0]}
        if changes.connection.execute(self._remove_events, machine).rowcount < STEP_EVENTS:
            for statement in (*self._remove_rest, self._remove_machine):
                changes.connection.execute(statement, machine)
        return True

    def _hide(self, changes: Changes, machine: MachineId) -> None:
        changes.connection.execute(self._mark, {"machine": machine, "now": time.time()})
        changes.forget(machine)
