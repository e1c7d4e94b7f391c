"""Whoever gets at the database itself and changes the audit log there is found out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from everforge.store.audit import AuditQuery, anchor, sealed
from everforge.store.sql.store import SqlStore
from everforge.wire.audit import AuditHead, Chain, ChainBroken, Seen, canonical, moment, plain

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
    "two in each other's place": (
        "UPDATE audit SET number = -4 WHERE number = 4; UPDATE audit SET number = 4 WHERE number = 5; UPDATE audit SET number = 5 WHERE number = -4",
        4,
    ),
}


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


async def _check(store: SqlStore, kept: AuditHead | None = None) -> None:
    chain = Chain(kept)
    for entry in await store.audit.entries(AuditQuery(limit=1000)):
        chain.add(plain(entry))
    chain.end(await store.audit.head())
