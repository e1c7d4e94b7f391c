"""A page of a list costs what is on it, however many machines there are: counted in steps of the database, since times tell little here."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.store.base import MachineQuery
from everforge.store.sql.changes import Changes
from everforge.store.sql.listing import Listing
from everforge.store.sql.queries import Queries
from everforge.store.sql.sqlite import Database
from everforge.store.sql.statements import Statements
from everforge.store.sql.store import SqlStore
from everforge.store.sql.sums import Sums
from everforge.wire.ids import OWNER, AccountId, MachineId, MachineName
from tests.conformance.store_suite import machine, point

MANY = 8_000
STEPS = 100  # the database counts in these


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """One account with most of it, asleep and with the same tag; a hundredth of it rare. Another's machines are awake; a small account has some."""
    path: Path = tmp_path_factory.mktemp("walks") / "store.db"
    asyncio.run(_create(path))
    database = Database(path)
    connection = database.connect(cache_kb=8192)
    changes = Changes(connection, Statements(database.dialect))
    connection.execute("BEGIN")
    for number in range(MANY):
        odd = number % 100 == 50
        account = OWNER if number % 4 else AccountId("other") if number % 100 else AccountId("small")
        record = machine(
            f"{'odd' if odd else 'even'}-{number}",
            account=account,
            created_at=float(number),
            residence="broken" if odd else "asleep" if account == OWNER else "awake",
            tags={"all": "x", "rare": "y"} if odd else {"all": "x"},
            expires_at=float(number) if odd else None,
        )
        changes.create(record, [], [point(record, 0)])
    connection.execute("COMMIT")
    connection.close()
    return database


async def _create(path: Path) -> None:
    await (await SqlStore.open(path)).close()


QUERIES = {
    "all": MachineQuery(account=OWNER),
    "the next page": MachineQuery(account=OWNER, before=(4000.0, MachineId("x"))),
    "of a small account": MachineQuery(account=AccountId("small")),
    "of nobody": MachineQuery(account=AccountId("nobody")),
    "a state that is rare": MachineQuery(account=OWNER, residences=frozenset({"broken"})),
    "a state that nothing is in": MachineQuery(account=OWNER, residences=frozenset({"waking"})),
    "a state that only others are in": MachineQuery(account=OWNER, residences=frozenset({"awake"})),
    "several states": MachineQuery(account=OWNER, residences=frozenset({"broken", "awake", "asleep"})),
    "several states of all accounts": MachineQuery(residences=frozenset({"broken", "awake", "waking"})),
    "a tag that all have": MachineQuery(account=OWNER, tags={"all": "x"}),
    "a tag that is rare": MachineQuery(account=OWNER, tags={"rare": "y"}),
    "a tag that is rare, and one that all have": MachineQuery(account=OWNER, tags={"rare": "y", "all": "x"}),
    "a tag of a small account": MachineQuery(account=AccountId("small"), tags={"all": "x"}),
    "a prefix that is rare": MachineQuery(account=OWNER, name_prefix="odd-"),
    "a prefix that nothing has": MachineQuery(account=OWNER, name_prefix="zzz"),
    "a prefix that most have": MachineQuery(account=OWNER, name_prefix="even-"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_costs_what_is_on_it(full: Database, name: str) -> None:
    query = replace(QUERIES[name], limit=10)
    connection, steps = full.connect(cache_kb=8192), Steps()
    connection.set_progress_handler(steps, STEPS)
    page = Listing(full.dialect).page(connection, query)
    assert len(page) in (0, 10)
    # A walk along all of them takes more than ten steps each. A prefix is counted first, up to FEW of them.
    assert steps.count * STEPS < (MANY * 5 if query.name_prefix or len(query.tags) > 1 else 10 * 300), steps.count * STEPS
    connection.close()


def test_one_machine_is_found_and_the_first_to_expire(full: Database) -> None:
    connection, steps = full.connect(cache_kb=8192), Steps()
    connection.set_progress_handler(steps, STEPS)
    queries = Queries(Statements(full.dialect))
    assert queries.find(connection, OWNER, MachineName("even-77"))
    assert [record.expires_at for record in queries.expiring(connection, 1e9, 2)] == [50.0, 150.0]
    assert steps.count * STEPS < 1000
    connection.close()


def test_counting_walks_along_indexes_alone(full: Database) -> None:
    """Which are a tenth of the size, and in order: no sorting."""
    connection = full.connect(cache_kb=8192)
    for statement in (Sums(full.dialect)._counts, Sums(full.dialect)._counts_of_account):  # pyright: ignore[reportPrivateUsage]
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", {"account": OWNER})]
        assert all("USING COVERING INDEX" in step for step in plan), plan
    assert Sums(full.dialect).counts(connection) == {"asleep": MANY * 74 // 100, "awake": MANY * 25 // 100, "broken": MANY // 100}
    connection.close()


class Steps:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return 0
