"""Attempts on their way to the record: whatever happens to a write, what was noted is written in the end, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from everforge.egress import journal
from everforge.egress.allowances import Allowances
from everforge.egress.attempts import Attempt
from everforge.egress.journal import Journal
from everforge.signals import Signals
from everforge.store.base import MachineRecord
from everforge.store.egress import AttemptRecord, EgressBook
from everforge.wire.errors import DiskFull
from everforge.wire.ids import OWNER, AccountId, MachineId

KEEP = 1000


class Book:
    """Fails when it is told to, and can be held up in the middle of a write."""

    def __init__(self) -> None:
        self.rows: dict[tuple[MachineId, int], AttemptRecord] = {}
        self.errors: list[Exception] = []
        self.open, self.busy, self.changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.open.set()

    async def note(self, attempts: Sequence[AttemptRecord], keep: int) -> None:
        assert keep == KEEP
        rows = [replace(row) for row in attempts]
        self.busy.set()
        await self.open.wait()
        if self.errors:
            raise self.errors.pop()
        self.rows |= {(row.machine, row.number): row for row in rows}
        self.changed.set()


class Scene:
    def __init__(self) -> None:
        self.book = Book()
        self.spent = 0
        self.counting = asyncio.Event()  # the usage counters answer
        self.counting.set()
        self.asked = asyncio.Event()
        self.allowances = Allowances(self._spend)
        self.journal = Journal(cast(EgressBook, self.book), KEEP, Signals(), self.allowances)
        self.machine = self.journal.of(cast(MachineRecord, Machine("m1")))

    async def _spend(self, account: AccountId, count: int) -> None:
        self.asked.set()
        await self.counting.wait()
        self.spent += count

    def begin(self) -> Attempt:
        attempt = Attempt(host="example.com", port=443, speech="http")
        self.machine.began(attempt)
        return attempt


class Machine:
    def __init__(self, id: str) -> None:
        self.id, self.account, self.name = MachineId(id), OWNER, id


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(journal, "GATHER_SECONDS", 0.001)
    monkeypatch.setattr(journal, "RETRY_SECONDS", 0.001)
    return Scene


async def test_an_orderly_end_in_the_middle_of_a_write_loses_nothing_and_counts_nothing_twice(scene: type[Scene]) -> None:
    s = scene()
    s.counting.clear()
    s.allowances.of(OWNER).unrecorded_bytes = 5
    s.begin()
    async with asyncio.timeout(5):
        await s.asked.wait()
        closing = asyncio.ensure_future(s.journal.close())
        await asyncio.sleep(0)
        s.counting.set()
        await closing
    assert len(s.book.rows) == 1
    assert s.spent == 5


async def test_a_caller_who_goes_away_in_the_middle_of_a_write_takes_nothing_along(scene: type[Scene]) -> None:
    s = scene()
    s.book.open.clear()
    s.begin()
    flushing = asyncio.ensure_future(s.journal.flush())
    async with asyncio.timeout(5):
        await s.book.busy.wait()
        flushing.cancel()
        await asyncio.wait([flushing])
        s.book.open.set()
        assert await s.journal.flush()
    assert len(s.book.rows) == 1
    await s.journal.close()


async def test_a_flush_returns_when_a_write_that_another_began_is_over(scene: type[Scene]) -> None:
    s = scene()
    s.book.open.clear()
    s.begin()
    async with asyncio.timeout(5):
        await s.book.busy.wait()
        flushing = asyncio.ensure_future(s.journal.flush())
        await asyncio.sleep(0)
        assert not flushing.done()
        s.book.open.set()
        assert await flushing
    assert len(s.book.rows) == 1
    await s.journal.close()


@pytest.mark.parametrize("error", [DiskFull("no room"), OSError("too many open files")], ids=lambda e: type(e).__name__)
async def test_a_write_that_failed_is_tried_again_though_nobody_tries_to_reach_anything(scene: type[Scene], error: Exception) -> None:
    s = scene()
    s.book.errors = [error]
    s.begin()
    async with asyncio.timeout(5):
        await s.book.changed.wait()
    assert len(s.book.rows) == 1
    await s.journal.close()


async def test_what_ends_while_it_is_being_written_is_written_again(scene: type[Scene]) -> None:
    s = scene()
    s.book.open.clear()
    attempt = s.begin()
    async with asyncio.timeout(5):
        await s.book.busy.wait()
        s.machine.ended(attempt)
        s.book.open.set()
        await s.journal.close()
    (row,) = s.book.rows.values()
    assert row.ended_at is not None


async def test_numbers_are_given_once_and_grow_whichever_machine_they_are_for(scene: type[Scene]) -> None:
    s = scene()
    for name in ("m1", "m2", "m3"):
        s.machine = s.journal.of(cast(MachineRecord, Machine(name)))
        s.begin()
        s.begin()
    await s.journal.close()
    numbers = [number for _, number in s.book.rows]
    assert sorted(set(numbers)) == numbers
    assert len(numbers) == 6
