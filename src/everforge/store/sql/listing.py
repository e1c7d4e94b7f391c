"""Pages of machines: the one statement that is built for each query, since what is asked for decides which index can serve it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from everforge.store import tape
from everforge.store.base import MachineQuery, MachineRecord

from .rows import to_record
from .statements import RECORD_COLUMNS
from .tables import machine_tags, machines

# Up to so many matches, collecting and sorting them is quicker than walking along all machines in the order of time and looking for them.
FEW = 2_000


class Listing:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def page(self, connection: sqlite3.Connection, query: MachineQuery) -> list[MachineRecord]:
        tape.check_limit(query.limit)
        if len(query.residences) > 1 and not query.tags and not query.name_prefix:
            # Of each residence alone an index has the order of time: a page of each, and the newest of them all.
            pages = [self.page(connection, replace(query, residences=frozenset({one}))) for one in query.residences]
            return sorted((r for page in pages for r in page), key=lambda r: (r.created_at, r.id), reverse=True)[: query.limit]
        statement = sa.select(*RECORD_COLUMNS).where(machines.c.purged_at.is_(None))
        if query.account is not None:
            statement = statement.where(machines.c.account == query.account)
        if query.residences:
            statement = statement.where(machines.c.residence.in_(sorted(query.residences)))
        else:
            statement = statement.where(machines.c.deleted_at.is_(None))
        if query.name_prefix:
            statement = self._with_prefix(connection, statement, query)
        created_at, id = machines.c.created_at, machines.c.id
        if query.tags:
            statement, created_at, id = self._with_tags(connection, statement, query)
        if query.before is not None:
            statement = statement.where(sa.tuple_(created_at, id) < sa.tuple_(*query.before))
        statement = statement.order_by(created_at.desc(), id.desc()).limit(query.limit)
        return [to_record(row) for row in self._execute(connection, statement)]

    def _with_prefix(self, connection: sqlite3.Connection, statement: sa.Select[Any], query: MachineQuery) -> sa.Select[Any]:
        name: sa.ColumnElement[str] = machines.c.name
        prefix = query.name_prefix
        matching = sa.select(machines.c.id).where(machines.c.account == query.account, _starts(name, prefix), machines.c.deleted_at.is_(None))
        # Names are in order only within an account.
        if query.account is None or self._count(connection, matching) >= FEW:
            name = name.concat("")  # an expression has no index: the walk is in the order of time
        return statement.where(_starts(name, prefix))

    def _with_tags(
        self, connection: sqlite3.Connection, statement: sa.Select[Any], query: MachineQuery
    ) -> tuple[sa.Select[Any], sa.ColumnElement[float], sa.ColumnElement[str]]:
        """The walk is along the rarest tag's own index, which has the order of time; the others are looked up for each machine."""
        tags = sorted(query.tags.items())
        if len(tags) > 1:
            tags.sort(key=lambda tag: self._count(connection, sa.select(machine_tags.c.machine).where(_is_tag(machine_tags, tag))))
        walked = machine_tags.alias("walked")
        statement = statement.join_from(walked, machines, walked.c.machine == machines.c.id).where(_is_tag(walked, tags[0]))
        if query.account is not None:
            statement = statement.where(walked.c.account == query.account)
        for number, tag in enumerate(tags[1:]):
            other = machine_tags.alias(f"other{number}")
            statement = statement.where(sa.select(other.c.machine).where(other.c.machine == walked.c.machine, _is_tag(other, tag)).exists())
        return statement, walked.c.created_at, walked.c.machine

    def _count(self, connection: sqlite3.Connection, matching: sa.Select[Any]) -> int:
        """How many, counted no further than FEW."""
        return self._execute(connection, sa.select(sa.func.count()).select_from(matching.limit(FEW).subquery())).fetchone()[0]

    def _execute(self, connection: sqlite3.Connection, statement: sa.Select[Any]) -> sqlite3.Cursor:
        compiled = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        return connection.execute(str(compiled), compiled.params)


def _starts(name: sa.ColumnElement[str], prefix: str) -> sa.ColumnElement[bool]:
    return sa.and_(name >= prefix, name < prefix + chr(0x10FFFF))  # names are ASCII: nothing sorts after that


def _is_tag(table: sa.FromClause, tag: tuple[str, str]) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.key == tag[0], table.c.value == tag[1])
