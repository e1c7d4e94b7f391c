"""The fixed statements, written with SQLAlchemy and compiled once to the driver's own text: nothing is left to build on the hot path."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

from everforge.store.tape import FIELDS

from .tables import accounts, events, machine_tags, machines, points, unended, usage

EVENT_COLUMNS = (events.c.kind, events.c.body, events.c.position, events.c.time, events.c.epoch, events.c.frame)
RECORD_COLUMNS = tuple(machines.c[name] for name in FIELDS)
POINT_COLUMNS = (
    points.c.snapshot,
    points.c.machine,
    points.c.position,
    points.c.instruction,
    points.c.created_at,
    points.c.reason,
    points.c.name,
    points.c.size_bytes,
)


def compile_text(dialect: Dialect, clause: ClauseElement) -> str:
    """With constants (integers only) written out: what is left to bind is what the statement names itself."""
    compiled = clause.compile(dialect=dialect)
    text = str(compiled)
    for name, value in (compiled.params or {}).items():
        if value is not None:
            assert type(value) is int, f"write {value!r} as a literal_column"
            text = re.sub(rf":{name}\b", str(value), text)
    return text


def insert_text(table: sa.Table) -> str:
    """Takes a tuple: a value for each column, in the table's order."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(table.columns))})"


def add_text(table: sa.Table) -> str:
    """Takes such a tuple, too: the first is the key, the others are added to what is there."""
    key, *sums = (column.name for column in table.columns)
    added = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in sums)
    return f"{insert_text(table)} ON CONFLICT ({key}) DO UPDATE SET {added}"


def _binds(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: sa.bindparam(name) for name in names}


class Statements:
    """Text with `:name` parameters; inserts take one value for each column, in the table's order."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        machine: sa.BindParameter[Any] = sa.bindparam("machine", type_=sa.Text)
        self.insert_event = insert_text(events)
        self.insert_unended = insert_text(unended)
        self.insert_point = insert_text(points)
        self.insert_tag = insert_text(machine_tags)
        self.add_usage = add_text(usage)
        self.insert_machine = self._text(sa.insert(machines).values(_binds(FIELDS)))

        self.delete_unended = self._text(sa.delete(unended).where(unended.c.machine == machine, unended.c.instruction == sa.bindparam("instruction")))
        self.delete_point = self._text(
            sa.delete(points).where(points.c.machine == machine, points.c.snapshot == sa.bindparam("snapshot")).returning(points.c.size_bytes)
        )
        self.delete_tags = self._text(sa.delete(machine_tags).where(machine_tags.c.machine == machine))

        self.record_by_id = self._text(sa.select(*RECORD_COLUMNS).where(machines.c.id == machine, machines.c.purged_at.is_(None)))
        self.record_by_name = self._text(
            sa.select(*RECORD_COLUMNS).where(
                machines.c.account == sa.bindparam("account"), machines.c.name == sa.bindparam("name"), machines.c.deleted_at.is_(None)
            )
        )
        self.account_is_gone = self._text(
            sa.select(accounts.c.id).where(accounts.c.id == sa.bindparam("account"), accounts.c.deleted_at.is_not(None))
        )
        account: sa.BindParameter[Any] = sa.bindparam("account", type_=sa.Text)
        living = sa.and_(machines.c.account == account, machines.c.deleted_at.is_(None))
        self.count_machines = self._text(sa.select(sa.func.count()).select_from(machines).where(living))
        self.disk_of_account = self._text(sa.select(usage.c.disk_bytes).where(usage.c.account == account))
        self.counters = self._text(
            sa.select(machines.c.position_floor, machines.c.source_position).where(machines.c.id == machine, machines.c.purged_at.is_(None))
        )
        self.owner = self._text(sa.select(machines.c.account, machines.c.created_at).where(machines.c.id == machine))
        self.source = self._text(sa.select(machines.c.source, machines.c.source_position, machines.c.purged_at).where(machines.c.id == machine))
        self.last_event = self._text(
            sa.select(events.c.position, events.c.width).where(events.c.machine == machine).order_by(events.c.position.desc()).limit(1)
        )
        self._tape_reads(machine)
        self._other_reads(machine)

    def update_machine(self, names: tuple[str, ...]) -> str:
        return self._text(sa.update(machines).where(machines.c.id == sa.bindparam("machine")).values(_binds(names)))

    def _tape_reads(self, machine: sa.BindParameter[Any]) -> None:
        after, upto, limit = (sa.bindparam(name, type_=sa.BigInteger) for name in ("after", "upto", "limit"))
        # An output that begins before `after` may reach past it: start with the last entry that begins at or before it.
        begins = sa.select(sa.func.max(events.c.position)).where(events.c.machine == machine, events.c.position <= after).scalar_subquery()
        self.tape = self._text(
            sa.select(*EVENT_COLUMNS)
            .where(events.c.machine == machine, events.c.position >= sa.func.coalesce(begins, -1), events.c.position <= upto)
            .order_by(events.c.position)
            .limit(limit)
        )
        instruction = sa.select(*EVENT_COLUMNS).where(
            events.c.machine == machine,
            events.c.instruction == sa.bindparam("instruction"),
            events.c.kind == sa.bindparam("kind"),
            events.c.position <= upto,
        )
        self.all_of_instruction = self._text(instruction.order_by(events.c.position))
        self.calls_of_instruction = self._text(
            sa.select(sa.func.json_extract(events.c.body, sa.literal_column("'$.call'")), events.c.kind, events.c.position)
            .where(
                events.c.machine == machine,
                events.c.instruction == sa.bindparam("instruction"),
                events.c.kind.in_([sa.literal_column("'called'"), sa.literal_column("'answered'")]),
            )
            .order_by(events.c.position)
        )
        self.instructions_after = self._text(
            sa.select(events.c.instruction)
            .where(
                events.c.machine == machine,
                events.c.instruction > sa.bindparam("instruction"),
                events.c.kind == sa.literal_column("'accepted'"),
                events.c.position <= upto,
            )
            .order_by(events.c.instruction)
            .limit(limit)
        )
        self.first_of_instruction = self._text(instruction.order_by(events.c.position).limit(1))
        self.last_of_instruction = self._text(instruction.order_by(events.c.position.desc()).limit(1))
        self.last_output_outside = self._text(
            sa.select(*EVENT_COLUMNS)
            .where(
                events.c.machine == machine, events.c.instruction.is_(None), events.c.kind == sa.literal_column("'output'"), events.c.position <= upto
            )
            .order_by(events.c.position.desc())
            .limit(1)
        )

    def _other_reads(self, machine: sa.BindParameter[Any]) -> None:
        self.expiring = self._text(
            sa.select(*RECORD_COLUMNS)
            .where(machines.c.expires_at < sa.bindparam("before"), machines.c.expires_at.is_not(None), machines.c.deleted_at.is_(None))
            .order_by(machines.c.expires_at, machines.c.id)
            .limit(sa.bindparam("limit", type_=sa.BigInteger))
        )
        self.received = self._text(
            sa.select(sa.func.max(events.c.frame)).where(
                events.c.machine == machine, events.c.epoch == sa.bindparam("epoch"), events.c.frame > sa.literal_column("0")
            )
        )
        self.unended = self._text(
            sa.select(*EVENT_COLUMNS)
            .join_from(unended, events, sa.and_(events.c.machine == unended.c.machine, events.c.position == unended.c.position))
            .where(unended.c.machine == machine)
            .order_by(unended.c.position)
        )
        self.with_unended = self._text(
            sa.select(unended.c.machine).join(machines, machines.c.id == unended.c.machine).where(machines.c.deleted_at.is_(None)).distinct()
        )
        self.with_key = self._text(
            sa.select(*EVENT_COLUMNS).where(events.c.machine == machine, events.c.key == sa.bindparam("key")).order_by(events.c.position).limit(1)
        )
        self.points = self._text(
            sa.select(*POINT_COLUMNS).where(points.c.machine == machine).order_by(points.c.position, points.c.created_at, points.c.snapshot)
        )
        deleted = sa.select(machines.c.id).where(machines.c.deleted_at.is_not(None))
        self.heads = self._text(sa.select(machines.c.head).where(machines.c.head.is_not(None), machines.c.deleted_at.is_(None)))
        self.point_snapshots = self._text(sa.select(points.c.snapshot).where(points.c.machine.not_in(deleted)))
        self.images = self._text(sa.select(machines.c.image).where(machines.c.deleted_at.is_(None)).distinct())
        named = sa.bindparam("snapshot", type_=sa.Text)
        self.head_in_use = self._text(sa.select(machines.c.id).where(machines.c.head == named, machines.c.deleted_at.is_(None)).limit(1))
        self.point_in_use = self._text(
            sa.select(machines.c.id)
            .join_from(points, machines, machines.c.id == points.c.machine)
            .where(points.c.snapshot == named, machines.c.deleted_at.is_(None))
            .limit(1)
        )

    def _text(self, clause: ClauseElement) -> str:
        return compile_text(self._dialect, clause)
