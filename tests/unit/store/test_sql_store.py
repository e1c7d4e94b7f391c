from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from everforge.store.base import Change, MachineQuery
from everforge.store.sql import migrate, sqlite, writer
from everforge.store.sql.rows import record_values
from everforge.store.sql.sqlite import Database
from everforge.store.sql.store import SqlStore
from everforge.store.sql.tables import metadata
from everforge.store.tape import INSTRUCTION_JUMP, POSITION_JUMP, READ_BYTES_MAX
from everforge.wire.errors import DiskFull, EverforgeError, InvalidInput, Refused, StoreDamaged, Uncertain
from everforge.wire.events import START, Moved, Position
from everforge.wire.ids import OWNER, AccountId, MachineId
from tests.conformance.store_suite import accepted, append, ended, machine, output, tape


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqlStore]:
    store = await SqlStore.open(path)
    yield store
    await store.close()


def crash(path: Path) -> Path:
    """What a killed server leaves: the files as they are now, and no clean end."""
    copy = path.parent.parent / "after-crash"
    shutil.copytree(path.parent, copy)
    return copy / path.name


# --- what survives -----------------------------------------------------------------------------------------------------------------


async def test_all_is_there_after_a_clean_restart_and_positions_go_on(path: Path) -> None:
    record = machine(next_instruction=5)
    store = await SqlStore.open(path)
    await store.create(record)
    written = await append(store, record, accepted(0), output(0, "a", "b"))
    await store.close()
    await store.close()
    assert not path.with_name("store.db-wal").exists()

    store = await SqlStore.open(f"sqlite:///{path}", boot_id="another")
    assert not await store.unclean_boot()
    assert await store.machine(record.id) == record
    assert await tape(store, record) == written
    assert [e.position for e in await append(store, record, ended(0))] == [3]
    await store.close()


async def test_one_read_of_many_short_lines_is_bounded_by_what_they_take_in_memory(store: SqlStore) -> None:
    record = machine()
    await store.create(record)
    written = [event for _ in range(20) for event in await append(store, record, output(0, *[""] * 4096))]
    first = await store.events(record.id, START, 1000)
    assert 1 <= len(first) <= 1 + READ_BYTES_MAX // (4096 * 56)
    seen = list(first)
    while more := await store.events(record.id, Position(seen[-1].position + 4095), 1000):
        seen += more
    assert seen == written


async def test_a_crash_of_the_server_alone_moves_no_counter(path: Path) -> None:
    record = machine()
    store = await SqlStore.open(path, boot_id="one")
    await store.create(record)
    await append(store, record, accepted(0))
    copy = crash(path)
    await store.close()
    store = await SqlStore.open(copy, boot_id="one")
    assert not await store.unclean_boot()
    assert [e.position for e in await append(store, record, ended(0))] == [1]
    await store.close()


async def test_after_a_power_cut_no_number_can_be_given_twice(path: Path) -> None:
    record, empty = machine("one", next_instruction=1), machine("two", next_instruction=7)
    store = await SqlStore.open(path, boot_id="one")
    await store.create(record)
    await store.create(empty)
    fork = machine("fork", source=record.id, source_position=Position(2))
    written = await append(store, record, accepted(0), output(0, "a", "b"), accepted(3))
    await store.create(fork)
    copy = crash(path)
    await store.close()

    store = await SqlStore.open(copy, boot_id="two")
    assert await store.unclean_boot()
    assert not await store.unclean_boot()
    for of, position, instruction in ((record, 4, 4), (empty, 0, 7), (fork, 3, 0)):
        found = await store.machine(of.id)
        assert found is not None
        assert found.next_instruction == instruction + INSTRUCTION_JUMP
        assert await store.end_position(of.id) == position + POSITION_JUMP - 1
        (event,) = await append(store, of, Moved(event="x", residence="awake"))
        assert event.position == position + POSITION_JUMP
    assert (await tape(store, record))[:-1] == written
    await store.close()
    store = await SqlStore.open(copy, boot_id="three")
    assert not await store.unclean_boot()
    await store.close()


KILLED = """
import asyncio, sys
from everforge.store.base import Change
from everforge.store.sql.store import SqlStore
from everforge.wire.ids import OWNER, AccountId, MachineId
from tests.conformance.store_suite import machine, output

async def main(path):
    store = await SqlStore.open(path)
    record = machine()
    await store.create(record)
    print(record.id, flush=True)
    async def write(name):
        for seq in range(10**9):
            (event,) = await store.commit(Change(machine=record.id, events=[output(None, f"{name}-{seq}")]))
            print(event.position, event.lines[0], flush=True)
    await asyncio.gather(*(write(name) for name in "abcd"))

asyncio.run(main(sys.argv[1]))
"""


async def test_every_acknowledged_write_survives_a_killed_server(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        id = MachineId(child.stdout.readline().strip())
        told = [child.stdout.readline().split() for _ in range(300)]
        os.kill(child.pid, signal.SIGKILL)
        told += [line.split() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    store = await SqlStore.open(path)
    events = await store.events(id, START, 100_000)
    found = {(event.position, event.lines[0]) for event in events if event.kind == "output"}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    assert {(int(position), line) for position, line in told} <= found
    assert [event.position for event in events] == list(range(len(events)))
    await store.close()


# --- durable -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Syncs wait for the event."""
    go = threading.Event()
    go.set()
    real = Database.sync

    def sync(database: Database) -> None:
        assert go.wait(10)
        real(database)

    monkeypatch.setattr(Database, "sync", sync)
    yield go
    go.set()


async def test_a_durable_change_is_told_after_the_sync_and_nobody_else_waits_for_it(slow_sync: threading.Event, store: SqlStore) -> None:
    record = machine()
    await store.create(record)
    slow_sync.clear()
    durable = asyncio.ensure_future(store.commit(Change(machine=record.id, set={"residence": "asleep"}, durable=True)))
    await append(store, record, accepted(0))
    await append(store, record, ended(0))
    assert not durable.done()
    slow_sync.set()
    await durable


async def test_a_durable_change_syncs_the_log(store: SqlStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = machine()
    await store.create(record)
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_ino), real(fd)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    await append(store, record, accepted(0))
    assert synced == []
    await store.commit(Change(machine=record.id, durable=True, set={"error": "x"}))
    assert path.with_name("store.db-wal").stat().st_ino in synced


async def test_after_a_failed_sync_nothing_is_promised_any_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqlStore.open(path)
    record = machine()
    await store.create(record)

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(Uncertain, match="Input/output error"):
            await store.commit(Change(machine=record.id, durable=True, set={"error": "x"}))
    for durable in (False, True):  # the disk seems well again, but it may have dropped what it could not write
        with pytest.raises(Uncertain):
            await store.commit(Change(machine=record.id, durable=durable, set={"error": "y"}))
    found = await store.machine(record.id)
    assert found is not None
    assert found.error == "x"
    await store.close()
    store = await SqlStore.open(path, boot_id="another")
    assert await store.unclean_boot()  # it did not end well, whatever the disk says by now
    await store.close()


async def test_what_a_power_cut_could_take_is_bounded(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.store.tape.UNSYNCED_INSTRUCTIONS_MAX", 40)
    record = machine()
    await store.create(record)
    synced = 0
    real = os.fsync

    def count(fd: int) -> None:
        nonlocal synced
        synced += 1
        real(fd)

    monkeypatch.setattr(os, "fsync", count)
    for number in range(200):
        await append(store, record, accepted(number))
    assert synced >= 200 // 40  # one sync may do for two that were due


# --- many writes -------------------------------------------------------------------------------------------------------------------


async def test_the_log_is_bounded_while_writes_never_pause(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOG_BYTES_SOFT", 64 * 1024)
    monkeypatch.setattr(writer, "LOG_BYTES_HARD", 512 * 1024)
    monkeypatch.setattr(sqlite, "LOG_BYTES_HARD", 512 * 1024)
    store = await SqlStore.open(path)
    records = [machine(f"m{i}") for i in range(8)]
    for record in records:
        await store.create(record)
    largest = 0

    async def write(number: int) -> None:
        nonlocal largest
        for seq in range(80):
            await append(store, records[number], output(None, "x" * 4000, first_seq=seq))
            largest = max(largest, path.with_name("store.db-wal").stat().st_size)

    await asyncio.gather(*(write(number) for number in range(8)))  # 2.5 MB of lines, several times that in the log
    assert largest < 4 * 1024 * 1024
    await store.close()


async def test_a_cancelled_caller_hurts_nobody_else(store: SqlStore) -> None:
    record = machine()
    await store.create(record)
    writes = [asyncio.ensure_future(append(store, record, accepted(i))) for i in range(20)]
    await asyncio.sleep(0)
    for write in writes[::2]:
        write.cancel()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(result, list) for result in results[1::2])
    numbers = [event.position for event in await tape(store, record)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 10


# --- what is refused ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"events": [accepted(0, key="\ud800")]},
        {"events": [accepted(2**70)]},
        {"set": {"metadata": {"x": object()}}},
        {"set": {"error": "\ud800"}},
        {"set": {"memory_mb": 2**70}},
        {"set": {"name": object()}},
        {"set": {"name": None}},
    ],
)
async def test_what_cannot_be_stored_is_refused_and_nothing_happens(store: SqlStore, change: dict[str, object]) -> None:
    record = machine()
    await store.create(record)
    with pytest.raises(InvalidInput):
        await store.commit(Change(machine=record.id, **({"events": [Moved(event="x", residence="awake")]} | change)))  # pyright: ignore[reportArgumentType]
    assert await store.machine(record.id) == record
    assert await tape(store, record) == []


async def test_a_closed_store_says_so(path: Path) -> None:
    store = await SqlStore.open(path)
    await store.close()
    with pytest.raises(Refused, match="closed"):
        await store.create(machine())
    with pytest.raises(Refused, match="closed"):
        await store.machines(MachineQuery())


async def test_a_database_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="postgresql"):
        await SqlStore.open("postgresql://localhost/x")


async def test_a_folder_where_the_database_should_be_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "everforge.db"
    path.mkdir()
    with pytest.raises(StoreDamaged, match=f"{path} cannot be used.*writable"):
        await SqlStore.open(path)


async def test_a_file_that_is_no_database_is_said_to_be_damaged(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(StoreDamaged, match=str(path)):
        await SqlStore.open(path)


async def test_damage_in_the_middle_is_said_and_never_read_as_data(path: Path) -> None:
    store = await SqlStore.open(path)
    record = machine()
    await store.create(record)
    for seq in range(50):
        await append(store, record, output(None, "x" * 4000, first_seq=seq))
    await store.close()
    data = bytearray(path.read_bytes())
    for page in range(20, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = os.urandom(64)
    path.write_bytes(data)

    async def look() -> None:
        store = await SqlStore.open(path)
        try:
            await tape(store, record)
        finally:
            await store.close()

    with pytest.raises(StoreDamaged, match="damaged"):
        await look()


async def test_a_database_from_the_future_is_left_alone(path: Path) -> None:
    await (await SqlStore.open(path)).close()
    with Database(path).engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreDamaged, match="newer Everforge"):
        await SqlStore.open(path)


@pytest.mark.root
async def test_a_full_disk_is_said_nothing_is_half_done_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small)], check=True)
    try:
        store = await SqlStore.open(small / "store.db")
        record = machine()
        await store.create(record)
        ballast = small / "ballast"
        ballast.write_bytes(b"x" * 1024 * 1024)
        written = 0

        async def fill() -> None:
            nonlocal written
            while written < 3000:
                line = output(None, "x" * 3000, first_seq=written)
                await store.commit(Change(machine=record.id, set={"next_instruction": written + 1}, events=[line]))
                written += 1

        with pytest.raises(DiskFull):
            await fill()
        assert len(await tape(store, record, limit=10_000)) == written
        found = await store.machine(record.id)
        assert found is not None
        assert found.next_instruction == written
        ballast.unlink()
        assert [e.position for e in await append(store, record, accepted(0))] == [written]
        await store.close()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


# --- migrations --------------------------------------------------------------------------------------------------------------------


async def test_the_migrations_lead_to_the_model(path: Path) -> None:
    await (await SqlStore.open(path)).close()
    with Database(path).engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert migrate.revision(connection) == migrate.HEAD
    assert ScriptDirectory(str(migrate.SCRIPTS)).get_current_head() == migrate.HEAD


async def test_a_database_of_the_first_revision_keeps_its_machines(path: Path) -> None:
    old = machine("old", account=OWNER, tags={"k": "v"})
    path.parent.mkdir()
    with Database(path).engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(migrate.SCRIPTS))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        values = record_values(old)
        columns = sa.inspect(connection).get_columns("machines")
        values = {name: value for name, value in values.items() if name in {c["name"] for c in columns}}  # others came later
        connection.execute(sa.table("machines", *(sa.column(c["name"]) for c in columns)).insert().values(values))
    store = await SqlStore.open(path)
    assert await store.find(OWNER, old.name) == old
    await store.create(machine("old", account=AccountId("another")))
    await store.close()
    with Database(path).engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


async def test_a_migration_that_fails_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise EverforgeError("no")

    with monkeypatch.context() as broken:
        broken.setattr("everforge.store.sql.boot.begin_run", fail)
        with pytest.raises(EverforgeError):
            await SqlStore.open(path)
    with Database(path).engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == []
    await (await SqlStore.open(path)).close()
