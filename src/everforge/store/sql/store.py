"""`SqlStore`: the Store of a real server. Its methods hand the work to threads, so the event loop never waits for a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from everforge.store.base import Change, KeyRecord, MachineQuery, MachineRecord, PointRecord, UsageRecord
from everforge.store.quotas import UNLIMITED, Quota
from everforge.store.tape import check_limit
from everforge.wire.errors import InvalidInput
from everforge.wire.events import Event, Position
from everforge.wire.ids import AccountId, MachineId, MachineName, SnapshotId

from . import boot, migrate
from .accounts import SqlAccounts
from .audit import SqlAudit
from .changes import Changes
from .checkpointer import Checkpointer
from .egress import SqlEgress
from .listing import Listing
from .purging import Purging
from .queries import Queries
from .readers import Readers
from .requests import Requests
from .sqlite import Database, translate
from .statements import Statements
from .sums import Sums
from .syncer import Syncer
from .webhooks import SqlWebhooks
from .writer import Writer


class SqlStore:
    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop, boot_id: str) -> None:
        """Use `open`: this one blocks."""
        self._unclean = _prepare(database, boot_id)
        statements = Statements(database.dialect)
        self._database = database
        self._queries = Queries(statements)
        self._listing = Listing(database.dialect)
        self._purging = Purging(database.dialect)
        self._requests = Requests(database.dialect)
        self._sums = Sums(database.dialect)
        self._syncer = Syncer(database.sync)
        self._writer = Writer(database, statements, self._syncer, loop)
        self._checkpointer = Checkpointer(database, self._writer)
        self._readers = Readers(database)
        self.accounts = SqlAccounts(database.dialect, self._writer, self._readers)
        self.egress = SqlEgress(database.dialect, self._writer, self._readers)
        self.webhooks = SqlWebhooks(self._writer, self._readers)
        self.audit = SqlAudit(database.dialect, self._writer, self._readers)
        self._closed = False

    @classmethod
    async def open(cls, url_or_path: str | Path, *, boot_id: str | None = None) -> SqlStore:
        """Open or create it, brought to the newest revision. `boot_id` is for tests. Raises StoreDamaged, DiskFull."""
        database = Database(_path(url_or_path))
        return await asyncio.to_thread(cls, database, asyncio.get_running_loop(), boot_id or boot.kernel_boot_id())

    async def create(
        self,
        record: MachineRecord,
        events: Sequence[Event] = (),
        points: Sequence[PointRecord] = (),
        key: KeyRecord | None = None,
        quota: Quota = UNLIMITED,
    ) -> Sequence[Event]:
        def apply(changes: Changes) -> Sequence[Event]:
            changes.check_quota(record.account, quota, 1)
            self._requests.add_key(changes, key)
            return changes.create(record, events, points)

        return await self._writer.write(apply, durable=True)

    async def create_together(
        self, machines: Sequence[tuple[MachineRecord, Sequence[Event], PointRecord]], key: KeyRecord | None = None, quota: Quota = UNLIMITED
    ) -> None:
        def apply(changes: Changes) -> None:
            changes.check_quota(machines[0][0].account, quota, len(machines))
            self._requests.add_key(changes, key)
            for record, events, point in machines:
                changes.create(record, events, [point])

        await self._writer.write(apply, durable=True)

    async def made_with_key(self, account: AccountId, route: str, key: str) -> KeyRecord | None:
        return await self._readers.read(lambda c: self._requests.made_with_key(c, account, route, key))

    async def prune_keys(self, before: float) -> None:
        await self._write(lambda changes: self._requests.prune(changes, before))

    async def commit(self, change: Change) -> Sequence[Event]:
        return await self._writer.write(lambda changes: changes.commit(change), durable=change.durable)

    async def machine(self, id: MachineId) -> MachineRecord | None:
        return await self._readers.read(lambda c: self._queries.machine(c, id))

    async def find(self, account: AccountId, name: MachineName) -> MachineRecord | None:
        return await self._readers.read(lambda c: self._queries.find(c, account, name))

    async def machines(self, query: MachineQuery) -> Sequence[MachineRecord]:
        return await self._readers.read(lambda c: self._listing.page(c, query))

    async def expiring(self, before: float, limit: int) -> Sequence[MachineRecord]:
        return await self._readers.read(lambda c: self._queries.expiring(c, before, limit))

    async def usage(self, account: AccountId) -> UsageRecord:
        return await self._readers.read(lambda c: self._sums.usage(c, account))

    async def add_egress(self, account: AccountId, egress_bytes: int) -> None:
        await self._write(lambda changes: changes.count_egress(account, egress_bytes))

    async def counts(self) -> Mapping[str, int]:
        return await self._readers.read(self._sums.counts)

    async def events(self, machine: MachineId, after: Position, limit: int) -> Sequence[Event]:
        check_limit(limit)
        return await self._readers.read(lambda c: self._queries.events(c, machine, after, limit))

    async def end_position(self, machine: MachineId) -> Position:
        return await self._readers.read(lambda c: self._queries.end_position(c, machine))

    async def received(self, machine: MachineId, epoch: int) -> int:
        return await self._readers.read(lambda c: self._queries.received(c, machine, epoch))

    async def unended(self, machine: MachineId) -> Sequence[Event]:
        return await self._readers.read(lambda c: self._queries.unended(c, machine))

    async def machines_with_unended(self) -> Sequence[MachineId]:
        return await self._readers.read(self._queries.machines_with_unended)

    async def instruction(self, machine: MachineId, instruction: int) -> tuple[Event, Event | None] | None:
        return await self._readers.read(lambda c: self._queries.instruction(c, machine, instruction))

    async def instructions(self, machine: MachineId, after: int, limit: int) -> tuple[Sequence[tuple[Event, Event | None]], bool]:
        return await self._readers.read(lambda c: self._queries.instructions(c, machine, after, limit))

    async def displayed(self, machine: MachineId, instruction: int) -> Sequence[Event]:
        return await self._readers.read(lambda c: self._queries.displayed(c, machine, instruction))

    async def calls(self, machine: MachineId, instruction: int) -> Mapping[int, Position | None]:
        return await self._readers.read(lambda c: self._queries.calls(c, machine, instruction))

    async def outputs(self, machine: MachineId, instruction: int | None) -> int:
        return await self._readers.read(lambda c: self._queries.outputs(c, machine, instruction))

    async def accepted_with_key(self, machine: MachineId, key: str) -> Event | None:
        return await self._readers.read(lambda c: self._queries.accepted_with_key(c, machine, key))

    async def points(self, machine: MachineId) -> Sequence[PointRecord]:
        return await self._readers.read(lambda c: self._queries.points(c, machine))

    async def referenced_snapshots(self) -> frozenset[SnapshotId]:
        return await self._readers.read(self._queries.referenced_snapshots)

    async def snapshot_in_use(self, snapshot: SnapshotId) -> bool:
        return await self._readers.read(lambda c: self._queries.snapshot_in_use(c, snapshot))

    async def is_head(self, snapshot: SnapshotId) -> bool:
        return await self._readers.read(lambda c: self._queries.is_head(c, snapshot))

    async def images_in_use(self) -> frozenset[str]:
        return await self._readers.read(self._queries.images_in_use)

    async def purge(self, machine: MachineId) -> None:
        await self._write(lambda changes: self._purging.mark(changes, machine))
        await self._remove_marked()

    async def purge_deleted(self, before: float) -> int:
        marked = 0
        while count := await self._write(lambda changes: self._purging.mark_old(changes, before)):
            marked += count
        await self._remove_marked()
        return marked

    async def _remove_marked(self) -> None:
        while await self._write(self._purging.remove_some):  # in small steps, with everyone else's writes in between
            pass

    async def unclean_boot(self) -> bool:
        unclean, self._unclean = self._unclean, False
        return unclean

    async def close(self) -> None:
        """What was asked for is done first. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        await self._readers.close()
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._syncer.close()
        self._checkpointer.close()
        if self._syncer.failed:
            return  # not a clean end: the next start must not trust the last numbers
        try:
            with self._database.engine.begin() as connection:
                boot.end_run(connection)
            self._database.sync()
        except Exception as e:
            raise translate(e, self._database.path) from e

    async def _write(self, apply: Callable[[Changes], Any]) -> Any:
        return await self._writer.write(apply, durable=False)


def _prepare(database: Database, boot_id: str) -> bool:
    try:
        database.path.parent.mkdir(parents=True, exist_ok=True)
        database.path.touch(mode=0o600)  # code and environments are in it; SQLite gives its other files the same mode
        with database.engine.begin() as connection:
            migrate.upgrade(connection)
            unclean = boot.begin_run(connection, boot_id)
        database.sync()
    except Exception as e:
        raise translate(e, database.path) from e
    return unclean


def _path(url_or_path: str | Path) -> Path:
    text = str(url_or_path)
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    elif "://" in text:
        raise InvalidInput(f"{text.split('://')[0]} databases are not known yet: give the path of a file, or sqlite:///PATH")
    return Path(text).absolute()
