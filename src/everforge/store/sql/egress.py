"""The egress book in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from everforge.store.egress import AttemptRecord, SecretRecord
from everforge.wire.errors import TooMany
from everforge.wire.ids import AccountId, MachineId

from .changes import Changes
from .readers import Readers
from .statements import compile_text, insert_text
from .tables import egress_attempts as table
from .tables import egress_defaults as defaults
from .tables import secrets
from .writer import Writer

_NAMES = tuple(f.name for f in fields(AttemptRecord))
_CHANGING = ("verdict", "why", "address", "sent_bytes", "received_bytes", "secrets", "ended_at", "allowed_by")


class SqlEgress:
    def __init__(self, dialect: Dialect, writer: Writer, readers: Readers) -> None:
        changed = ", ".join(f"{name} = excluded.{name}" for name in _CHANGING)
        self._note = f"{insert_text(table)} ON CONFLICT (machine, number) DO UPDATE SET {changed}"
        machine = sa.bindparam("machine", type_=sa.Text)
        before, limit = sa.bindparam("before", type_=sa.BigInteger), sa.bindparam("limit", type_=sa.BigInteger)
        newest = sa.select(*table.columns).where(table.c.machine == machine, table.c.number < before).order_by(table.c.number.desc())
        self._newest = compile_text(dialect, newest.limit(limit))
        kept = sa.bindparam("keep", type_=sa.BigInteger)
        last = sa.select(table.c.number).where(table.c.machine == machine).order_by(table.c.number.desc()).offset(kept).limit(1).scalar_subquery()
        self._prune = compile_text(dialect, sa.delete(table).where(table.c.machine == machine, table.c.number <= last))
        account, name = sa.bindparam("account", type_=sa.Text), sa.bindparam("name", type_=sa.Text)
        self._default = compile_text(dialect, sa.select(defaults.c.policy).where(defaults.c.account == account))
        self._drop_default = compile_text(dialect, sa.delete(defaults).where(defaults.c.account == account))
        self._set_default = insert_text(defaults)
        self._secrets = compile_text(dialect, sa.select(*secrets.columns).where(secrets.c.account == account).order_by(secrets.c.name))
        self._secret = compile_text(dialect, sa.select(secrets.c.name).where(secrets.c.account == account, secrets.c.name == name))
        self._count_secrets = compile_text(dialect, sa.select(sa.func.count()).select_from(secrets).where(secrets.c.account == account))
        self._drop_secret = compile_text(dialect, sa.delete(secrets).where(secrets.c.account == account, secrets.c.name == name))
        self._add_secret = insert_text(secrets)
        self._writer = writer
        self._readers = readers

    async def note(self, attempts: Sequence[AttemptRecord], keep: int) -> None:
        rows = [tuple(getattr(attempt, name) for name in _NAMES) for attempt in attempts]
        machines = {attempt.machine for attempt in attempts}

        def apply(changes: Changes) -> None:
            changes.connection.executemany(self._note, rows)
            for machine in machines:
                changes.connection.execute(self._prune, {"machine": machine, "keep": keep})

        await self._writer.write(apply, durable=False)

    async def attempts(self, machine: MachineId, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        wanted = {"machine": machine, "before": 2**63 - 1 if before is None else before, "limit": limit}
        rows = await self._readers.read(lambda connection: connection.execute(self._newest, wanted).fetchall())
        return [AttemptRecord(**dict(zip(_NAMES, row, strict=True))) for row in rows]

    async def default(self, account: AccountId) -> Mapping[str, Any] | None:
        row = await self._readers.read(lambda connection: connection.execute(self._default, {"account": account}).fetchone())
        return json.loads(row[0]) if row else None

    async def set_default(self, account: AccountId, policy: Mapping[str, Any] | None) -> None:
        def apply(changes: Changes) -> None:
            changes.connection.execute(self._drop_default, {"account": account})
            if policy is not None:
                changes.connection.execute(self._set_default, (account, json.dumps(dict(policy))))

        await self._writer.write(apply, durable=True)

    async def secrets(self, account: AccountId) -> Sequence[SecretRecord]:
        rows = await self._readers.read(lambda connection: connection.execute(self._secrets, {"account": account}).fetchall())
        return [_to_secret(row) for row in rows]

    async def put_secret(self, secret: SecretRecord, at_most: int) -> None:
        def apply(changes: Changes) -> None:
            connection, it = changes.connection, {"account": secret.account, "name": secret.name}
            known = connection.execute(self._secret, it).fetchone()
            if not known and connection.execute(self._count_secrets, {"account": secret.account}).fetchone()[0] >= at_most:
                raise TooMany(f"an account has {at_most} secrets at most; delete one that is no longer used")
            connection.execute(self._drop_secret, it)
            connection.execute(self._add_secret, _secret_row(secret))

        await self._writer.write(apply, durable=True)

    async def delete_secret(self, account: AccountId, name: str) -> bool:
        wanted = {"account": account, "name": name}
        return await self._writer.write(lambda changes: changes.connection.execute(self._drop_secret, wanted).rowcount > 0, durable=True)


def _secret_row(s: SecretRecord) -> tuple[Any, ...]:
    return (s.account, s.name, s.placeholder, s.sealed, " ".join(s.hosts), s.header, " ".join(s.places), s.created_at, s.changed_at)


def _to_secret(row: Sequence[Any]) -> SecretRecord:
    account, name, placeholder, sealed, hosts, header, places, created_at, changed_at = row
    return SecretRecord(
        account=account,
        name=name,
        placeholder=placeholder,
        sealed=sealed,
        hosts=hosts.split(),
        header=header,
        places=places.split(),
        created_at=created_at,
        changed_at=changed_at,
    )
