"""Idempotency keys of requests that make machines: written with what they made."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from everforge.store.base import KeyRecord
from everforge.wire.ids import AccountId, MachineId

from .changes import Changes
from .statements import compile_text, insert_text
from .tables import keys


class Requests:
    def __init__(self, dialect: Dialect) -> None:
        self._insert = insert_text(keys)
        account, route, key = (sa.bindparam(name, type_=sa.Text) for name in ("account", "route", "key"))
        named = sa.and_(keys.c.account == account, keys.c.route == route, keys.c.key == key)
        self._find = compile_text(dialect, sa.select(keys.c.request, keys.c.made, keys.c.created_at).where(named))
        self._prune = compile_text(dialect, sa.delete(keys).where(keys.c.created_at < sa.bindparam("before")))

    def add_key(self, changes: Changes, key: KeyRecord | None) -> None:
        if key is not None:
            row = (key.account, key.route, key.key, key.request, " ".join(key.made), key.created_at)
            changes.connection.execute(self._insert, row)

    def made_with_key(self, connection: sqlite3.Connection, account: AccountId, route: str, key: str) -> KeyRecord | None:
        row = connection.execute(self._find, {"account": account, "route": route, "key": key}).fetchone()
        if row is None:
            return None
        request, made, created_at = row
        ids = tuple(MachineId(id) for id in made.split())
        return KeyRecord(account=account, route=route, key=key, request=request, made=ids, created_at=created_at)

    def prune(self, changes: Changes, before: float) -> None:
        changes.connection.execute(self._prune, {"before": before})
