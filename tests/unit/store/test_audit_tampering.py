"""Whoever gets at the database itself and changes the audit log there is found out."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everforge import AsyncEverforge
from everforge.store.audit import PRUNE_MAX, AuditQuery, anchor, sealed
from everforge.store.sql.store import SqlStore
from everforge.store.sql.writer import Writer
from everforge.wire.audit import GENESIS, HASHES_MAX, PRUNED, AuditHead, Chain, ChainBroken, Seen, canonical, moment, plain
from everforge.wire.auditpart import Part
from everforge.wire.errors import EverforgeError
from kit.service import service

NOTHING = AuditHead(number=0, hash=GENESIS)  # where a log ends that has no entry yet
TAMPERING = {
    "an outcome edited": ("UPDATE audit SET outcome = 'ok' WHERE number = 4", 4),
    "a time edited": ("UPDATE audit SET time_ms = time_ms + 1 WHERE number = 6", 6),
    "a detail edited": ("UPDATE audit SET detail = '{\"n\":0}' WHERE number = 2", 2),
    "a detail made unreadable": ("UPDATE audit SET detail = 'no JSON' WHERE number = 2", 2),
    "an address removed": ("UPDATE audit SET address = NULL WHERE number = 9", 9),
    "an edit with its own hash put right": ("UPDATE audit SET previous = 'x' WHERE number = 7", 7),
    "one deleted": ("DELETE FROM audit WHERE number = 5", 5),
    "the first deleted": ("DELETE FROM audit WHERE number = 1", 1),
    "the first four deleted": ("DELETE FROM audit WHERE number <= 4", 1),
    "the last deleted": ("DELETE FROM audit WHERE number = 10", 10),
    "all deleted": ("DELETE FROM audit", 1),
    "where it ends taken away": ("DELETE FROM audit_head", 11),
    "the last deleted and where it ends taken away": ("DELETE FROM audit WHERE number > 6; DELETE FROM audit_head", 7),
    "where it ends set back": ("UPDATE audit_head SET number = 6, hash = (SELECT hash FROM audit WHERE number = 6)", 11),
    "a time far away": ("UPDATE audit SET time_ms = 1000000000000000000 WHERE number = 6", 6),
    "a time that is no number": ("UPDATE audit SET time_ms = 'soon' WHERE number = 6", 6),
    "a time that is no whole number": ("UPDATE audit SET time_ms = 6000.5 WHERE number = 6", 6),
    "a machine that is no text": ("UPDATE audit SET machine = CAST(x'ff00fe' AS TEXT) WHERE number = 3", 3),
    "an account of bytes": ("UPDATE audit SET account = x'6164' WHERE number = 3", 3),
    "an action of bytes": ("UPDATE audit SET action = x'ff' WHERE number = 3", 3),
    "a request of two megabytes": ("UPDATE audit SET request = CAST(zeroblob(2000000) AS TEXT) WHERE number = 3", 3),
    "a hash of bytes": ("UPDATE audit SET hash = CAST(hash AS BLOB) WHERE number = 4", 4),
    "a previous of bytes": ("UPDATE audit SET previous = CAST(previous AS BLOB) WHERE number = 4", 4),
    "a detail of bytes": ("UPDATE audit SET detail = CAST(detail AS BLOB) WHERE number = 4", 4),
    "a detail that is no text": ("UPDATE audit SET detail = CAST(x'7bff7d' AS TEXT) WHERE number = 4", 4),
    "a detail with no number": ("UPDATE audit SET detail = '{\"a\":NaN}' WHERE number = 4", 4),
    "a detail with a number too large": ("UPDATE audit SET detail = '{\"a\":1e999}' WHERE number = 4", 4),
    "a detail that is deep": (f"UPDATE audit SET detail = '{{\"a\":{'[' * 100_000}{']' * 100_000}}}' WHERE number = 4", 4),
    "a detail that is deep enough": (f"UPDATE audit SET detail = '{{\"a\":{'[' * 900}{']' * 900}}}' WHERE number = 4", 4),
    "a detail that is a list": ("UPDATE audit SET detail = '[]' WHERE number = 4", 4),
    "a number of text": ("UPDATE audit SET number = 'four' WHERE number = 4", 4),
    "a number of bytes": ("UPDATE audit SET number = x'34' WHERE number = 4", 4),
    "a number that is none": ("UPDATE audit SET number = 4.5 WHERE number = 4", 4),
    "a number beyond all": ("UPDATE audit SET number = 9223372036854775807 WHERE number = 4", 4),
    "where it ends in bytes": ("UPDATE audit_head SET hash = x'ff'", 11),
    "where it ends no text": ("UPDATE audit_head SET hash = CAST(x'ff' AS TEXT)", 11),
    "where it ends no number": ("UPDATE audit_head SET number = 'ten'", 11),
    "where it ends beyond all": ("UPDATE audit_head SET number = 9223372036854775807", 11),
    "two in each other's place": (
        "UPDATE audit SET number = -4 WHERE number = 4; UPDATE audit SET number = 4 WHERE number = 5; UPDATE audit SET number = 5 WHERE number = -4",
        4,
    ),
}


def _deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize("how", TAMPERING)
async def test_the_first_entry_that_was_tampered_with_is_named(how: str, tmp_path: Path) -> None:
    script, number = TAMPERING[how]
    store = await SqlStore.open(tmp_path / "store.db")
    entries = [Seen(time=moment(n), action="machine.create", outcome="Forbidden", address="127.0.0.1", detail={"n": n}) for n in range(1, 11)]
    await store.audit.append(entries)
    await _check(store)
    await store.close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.executescript(script)
    connection.close()
    store = await SqlStore.open(tmp_path / "store.db")
    with pytest.raises(ChainBroken) as broken:
        await _check(store)
    assert broken.value.number == number
    await store.audit.append(entries)  # what comes later does not cover it up
    with pytest.raises(ChainBroken) as broken:
        await _check(store)
    assert broken.value.number == number
    await store.close()


def _forge_prune(connection: sqlite3.Connection) -> None:
    """As the server itself would have let go the first six."""
    number, hash = connection.execute("SELECT number, hash FROM audit WHERE number = 6").fetchone()
    (end,) = connection.execute("SELECT hash FROM audit_head").fetchone()
    (entry,) = sealed([anchor(AuditHead(number=number, hash=hash), 100.0)], AuditHead(number=10, hash=end))
    values = (entry.number, 100_000, entry.action, entry.outcome, *[None] * 6, canonical(entry.detail), entry.previous, entry.hash)
    connection.execute(f"INSERT INTO audit VALUES ({', '.join('?' * len(values))})", values)
    connection.execute("UPDATE audit_head SET number = ?, hash = ?", (entry.number, entry.hash))
    connection.execute("DELETE FROM audit WHERE number <= 6")


def _cut(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM audit WHERE number > 4")
    connection.execute("UPDATE audit_head SET number = 4, hash = (SELECT hash FROM audit WHERE number = 4)")


@pytest.mark.parametrize("forge", [_forge_prune, _cut])
async def test_what_is_cut_with_all_that_belongs_to_it_shows_to_who_kept_a_hash_of_it_and_to_nobody_else(
    forge: Callable[[sqlite3.Connection], None], tmp_path: Path
) -> None:
    store = await SqlStore.open(tmp_path / "store.db")
    await store.audit.append([Seen(time=moment(n), action="machine.create") for n in range(1, 6)])
    kept = await store.audit.head()
    await store.audit.append([Seen(time=moment(n), action="machine.create") for n in range(6, 11)])
    await _check(store, kept)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        forge(connection)
    connection.close()
    await _check(store)
    with pytest.raises(ChainBroken) as broken:
        await _check(store, kept)
    assert broken.value.number == 5
    await store.close()


async def test_a_log_that_was_written_anew_shows_to_who_kept_a_hash(tmp_path: Path) -> None:
    kept = AuditHead(number=3, hash="5" * 64)
    store = await SqlStore.open(tmp_path / "store.db")
    await store.audit.append([Seen(time=moment(n), action="machine.create") for n in range(1, 6)])
    await _check(store)
    with pytest.raises(ChainBroken) as broken:
        await _check(store, kept)
    assert broken.value.number == 3
    await store.close()


@pytest.mark.parametrize("how", TAMPERING)
async def test_whatever_stands_in_it_the_log_is_shown_and_its_oldest_entries_are_let_go(how: str, tmp_path: Path) -> None:
    store = await SqlStore.open(tmp_path / "store.db")
    await store.audit.append([Seen(time=moment(n), action="machine.create", account="ada", detail={"n": n}) for n in range(1, 11)])
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.executescript(TAMPERING[how][0])
    connection.close()
    async with service(store=store) as running:
        async with AsyncEverforge(token=running.token, base_url=running.url) as owner:
            shown = [entry async for entry in owner.audit.entries()]
        assert {entry.number for entry in shown} >= {7, 8} or "deleted" in how
    for _ in range(3):
        await store.audit.prune(0, 2_000, 500.0)
        await store.audit.append([Seen(time=moment(n), action="machine.create", detail={"n": n}) for n in range(20)])
    await store.audit.prune(0, 2_000, 500.0)
    assert len(await store.audit.entries(AuditQuery())) < 10
    await store.close()


@pytest.mark.parametrize("detail", [{"a": float("nan")}, {"a": b""}, {1: 1, "b": 2}, _deep(100_000)], ids=["no number", "bytes", "names", "deep"])
@pytest.mark.parametrize("kind", [Chain, Part])
def test_what_no_log_ever_had_is_unsound_and_no_mistake_of_who_checks(kind: type[Chain | Part], detail: dict[Any, Any]) -> None:
    (entry,) = sealed([Seen(time=moment(1), action="machine.create")], NOTHING)
    for hash in (entry.hash, None):
        with pytest.raises(ChainBroken) as broken:
            kind().add({**plain(entry), "detail": detail, "hash": hash})
        assert broken.value.number == 1


@pytest.mark.parametrize("detail", [{}, {"through": 4}, {"through": 99}, {"through": 4, "hash": None}, {"through": True, "hash": "x"}])
def test_a_prune_that_names_no_hash_does_not_say_that_entries_were_let_go(detail: dict[str, Any]) -> None:
    entries = sealed([Seen(time=moment(n), action=PRUNED if n == 8 else "machine.create", detail=detail) for n in range(1, 11)], NOTHING)
    chain = Chain()
    for entry in entries[4:]:
        chain.add(plain(entry))
    with pytest.raises(ChainBroken, match="no entry says that it was let go"):
        chain.end()


async def test_a_server_that_is_killed_while_it_lets_much_go_leaves_a_log_that_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PRUNE_MAX < HASHES_MAX
    monkeypatch.setattr("everforge.wire.audit.HASHES_MAX", 25)
    monkeypatch.setattr("everforge.store.sql.audit.PRUNE_MAX", 20)
    monkeypatch.setattr("everforge.store.sql.audit.PRUNE_STEP", 5)
    store = await SqlStore.open(tmp_path / "store.db")
    await store.audit.append([Seen(time=moment(n), action="machine.create") for n in range(1, 101)])
    left, write = 0, Writer.write

    async def killed_in_the_middle(self: Writer, apply: Callable[[Any], Any], *, durable: bool) -> Any:
        nonlocal left
        left -= 1
        if not left:
            raise EverforgeError("killed")
        return await write(self, apply, durable=durable)

    monkeypatch.setattr(Writer, "write", killed_in_the_middle)
    for writes in range(1, 12):
        left = writes
        with contextlib.suppress(EverforgeError):
            await store.audit.prune(91_000, 10**9, 200.0)
        await _check(store)
    await store.audit.prune(91_000, 10**9, 200.0)
    assert (await store.audit.entries(AuditQuery()))[0].number == 91
    await _check(store)
    await store.close()


async def _check(store: SqlStore, kept: AuditHead | None = None) -> None:
    chain = Chain(kept)
    for entry in await store.audit.entries(AuditQuery(limit=1000)):
        chain.add(plain(entry))
    chain.end(await store.audit.head())
