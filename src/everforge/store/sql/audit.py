"""The audit log in the database. Numbers and hashes are given in the transaction that writes the entries: there is one writer, and one chain."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from everforge.store.audit import ENTRY_BYTES, PRUNE_MAX, PRUNE_STEP, PRUNED_TO, TEXTS, AuditQuery, anchor, sealed
from everforge.wire.audit import GENESIS, AuditEntry, AuditHead, Seen, canonical, to_ms

from .audit_rows import NUMBER_MAX, any_text, to_entry, to_head
from .changes import Changes
from .readers import Readers
from .statements import insert_text
from .tables import audit, audit_head
from .writer import Writer

_INSERT = insert_text(audit)
_HEAD = "SELECT number, hash FROM audit_head WHERE id = 1"
_NUMBERED = f"number >= 0 AND number < {NUMBER_MAX} AND number = CAST(number AS BIGINT)"  # whoever was at it may have put anything there
_LAST = f"SELECT number FROM audit WHERE {_NUMBERED} ORDER BY number DESC LIMIT 1"
_SET_HEAD = insert_text(audit_head) + " ON CONFLICT (id) DO UPDATE SET number = excluded.number, hash = excluded.hash"
# Where to cut: behind the newest entry that is too old, or that what is newer fills the bytes before.
# Up to the first that is not old: one whose clock was wrong takes no younger ones with it.
_OLD = (
    "SELECT number FROM audit WHERE number < COALESCE((SELECT MIN(number) FROM audit WHERE time_ms >= :before_ms), :all)"
    f" AND {_NUMBERED} ORDER BY number DESC LIMIT 1"
)
_SIZE = " + ".join((str(ENTRY_BYTES), *(f"COALESCE(LENGTH(CAST({text} AS BLOB)), 0)" for text in TEXTS)))
_BYTES = f"SELECT COALESCE(SUM({_SIZE}), 0) FROM audit"
_OVER = (
    f"SELECT number FROM (SELECT number, SUM({_SIZE}) OVER (ORDER BY number DESC) AS total FROM audit) AS counted"
    f" WHERE total > :bytes AND {_NUMBERED} ORDER BY number DESC LIMIT 1"
)
_FIRST = f"SELECT number FROM audit WHERE {_NUMBERED} ORDER BY number LIMIT 1"
_UP_TO = f"SELECT number FROM audit WHERE number <= :number AND {_NUMBERED} ORDER BY number DESC LIMIT 1"
_HASH_AT = "SELECT number, hash FROM audit WHERE number = :number"
_LET_GO = "DELETE FROM audit WHERE number IN (SELECT number FROM audit WHERE number <= :through ORDER BY number LIMIT :step)"


class SqlAudit:
    def __init__(self, dialect: Dialect, writer: Writer, readers: Readers) -> None:
        self._dialect = dialect
        self._writer = writer
        self._readers = readers

    async def append(self, seen: Sequence[Seen]) -> None:
        await self._writer.write(lambda changes: _append(changes, seen), durable=False)

    async def entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        return await self._readers.read(lambda connection: self._entries(connection, query))

    def _entries(self, connection: sqlite3.Connection, query: AuditQuery) -> list[AuditEntry]:
        compiled = _statement(query).compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        with any_text(connection):
            found = [to_entry(row) for row in connection.execute(str(compiled), compiled.params)]
        return found[::-1] if query.last else found

    async def head(self) -> AuditHead:
        return await self._readers.read(_head)

    async def prune(self, before_ms: int, bytes_max: int, at: float) -> int:
        last, gone = await self._readers.read(lambda connection: _cut(connection, before_ms, bytes_max)), 0
        while through := await self._readers.read(lambda connection: _part_of_cut(connection, last)):
            gone += await self._prune(through, at)
        return gone

    async def _prune(self, through: AuditHead, at: float) -> int:
        """The anchor first: a server that is killed in between leaves entries that are still whole, and the next one goes on."""
        await self._writer.write(lambda changes: _append(changes, [anchor(through, at)]), durable=False)
        gone = 0
        while count := await self._writer.write(lambda changes: _let_go(changes, through.number), durable=False):
            gone += count
        return gone


def _append(changes: Changes, seen: Sequence[Seen]) -> None:
    made = sealed(seen, _head(changes.connection))
    if made:
        changes.connection.executemany(_INSERT, [_row(entry) for entry in made])
        changes.connection.execute(_SET_HEAD, (1, made[-1].number, made[-1].hash))


def _head(connection: sqlite3.Connection) -> AuditHead:
    """It stands by itself, so that it shows when the last entries alone were taken away.

    Beside entries it is always there, and never before one of them. Where somebody took it away, set it back or made it something else the log goes
    on, but what is written next follows nothing: the chain stays broken there.
    """
    with any_text(connection):
        found = to_head(connection.execute(_HEAD).fetchone())
    last = _number(connection.execute(_LAST))
    return found if found is not None and found.number >= last else AuditHead(number=last, hash=GENESIS)


def _number(found: sqlite3.Cursor) -> int:
    row = found.fetchone()
    return row[0] if row else 0


def _cut(connection: sqlite3.Connection, before_ms: int, bytes_max: int) -> int:
    """The last that is let go, or 0."""
    number = _number(connection.execute(_OLD, {"before_ms": before_ms, "all": NUMBER_MAX}))
    if connection.execute(_BYTES).fetchone()[0] > bytes_max:
        number = max(number, _number(connection.execute(_OVER, {"bytes": int(bytes_max * PRUNED_TO)})))
    return number


def _part_of_cut(connection: sqlite3.Connection, last: int) -> AuditHead | None:
    """As much of it as goes under one anchor: its last entry. None when all are gone."""
    first = connection.execute(_FIRST).fetchone()
    if first is None or first[0] > last:
        return None
    number = _number(connection.execute(_UP_TO, {"number": min(last, first[0] + PRUNE_MAX - 1)}))
    with any_text(connection):
        found = connection.execute(_HASH_AT, {"number": number}).fetchone()
    # A hash that is none is followed by nothing that is kept: the log stays broken there, and old entries go all the same.
    return to_head(found) or AuditHead(number=number, hash=GENESIS)


def _let_go(changes: Changes, through: int) -> int:
    return changes.connection.execute(_LET_GO, {"through": through, "step": PRUNE_STEP}).rowcount


def _statement(q: AuditQuery) -> sa.Select[Any]:
    statement = sa.select(*audit.c).where(audit.c.number > q.after, sa.text(_NUMBERED))
    if q.account is not None:
        statement = statement.where(audit.c.account == q.account)
    if q.machine is not None:
        statement = statement.where(audit.c.machine == q.machine)
    if q.action is not None:
        below = sa.and_(audit.c.action > f"{q.action}.", audit.c.action < f"{q.action}/")  # what begins so: '/' follows '.'
        statement = statement.where(sa.or_(audit.c.action == q.action, below))
    if q.since_ms is not None:
        statement = statement.where(audit.c.time_ms >= q.since_ms)
    return statement.order_by(audit.c.number.desc() if q.last else audit.c.number).limit(q.limit)


def _row(e: AuditEntry) -> tuple[Any, ...]:
    detail = canonical(e.detail)
    who = (e.account, e.account_name, e.token, e.machine, e.address, e.request)
    return (e.number, to_ms(e.time), e.action, e.outcome, *who, detail, e.previous, e.hash)
