"""How much of everything there is: walks along indexes alone, and sums that the writer keeps."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from everforge.store import tape
from everforge.store.base import UsageRecord
from everforge.wire.ids import AccountId

from .statements import compile_text
from .tables import machines, usage

ALIVE = ("awake", "saving", "hibernating")  # residences in which a machine takes memory
_SUMS = sa.select(usage.c.instructions, usage.c.runtime_ms, usage.c.disk_bytes, usage.c.egress_bytes, usage.c.awake_ms)


class Sums:
    def __init__(self, dialect: Dialect) -> None:
        account = sa.bindparam("account", type_=sa.Text)
        # By the word and not by `deleted_at`, which is in no index beside it: a machine is deleted in one and the same write as both.
        living = machines.c.residence != sa.literal_column("'deleted'")
        counted = sa.select(machines.c.residence, sa.func.count()).where(living).group_by(machines.c.residence)
        self._counts = compile_text(dialect, counted)
        self._counts_of_account = compile_text(dialect, counted.where(machines.c.account == account))
        self._sums = compile_text(dialect, _SUMS.where(usage.c.account == account))
        awake = machines.c.residence.in_([sa.literal_column(f"'{word}'") for word in ALIVE])
        since = sa.select(machines.c.awake_since).where(machines.c.account == account, awake, machines.c.awake_since.is_not(None))
        self._awake = compile_text(dialect, since)

    def usage(self, connection: sqlite3.Connection, account: AccountId) -> UsageRecord:
        residences = dict(connection.execute(self._counts_of_account, {"account": account}).fetchall())
        sums = connection.execute(self._sums, {"account": account}).fetchone() or (0, 0, 0, 0, 0)
        instructions, runtime_ms, disk_bytes, egress_bytes, awake_ms = sums
        now = time.time()
        awake_ms += sum(tape.awake_ms(since, now) for (since,) in connection.execute(self._awake, {"account": account}))
        return UsageRecord(
            residences=residences, instructions=instructions, runtime_ms=runtime_ms, disk_bytes=disk_bytes, egress_bytes=egress_bytes,
            awake_ms=awake_ms,
        )  # fmt: skip

    def counts(self, connection: sqlite3.Connection) -> Mapping[str, int]:
        return dict(connection.execute(self._counts).fetchall())
