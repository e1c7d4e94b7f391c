"""The recorder: what is written of what is done, how much, and what is let go."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everforge.audit.allowance import Allowance
from everforge.audit.recorder import Recorder
from everforge.audit.refusals import Refusals
from everforge.audit.settings import AuditSettings
from everforge.store.audit import AuditQuery, size_bytes
from everforge.store.memory_audit import MemoryAudit
from everforge.store.sql.store import SqlStore
from everforge.wire.audit import Seen, moment
from everforge.wire.errors import DiskFull

QUICK = AuditSettings(audit_flush_seconds=0.01)


class Balky(MemoryAudit):
    """Takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.full = True

    async def append(self, seen: Any) -> None:
        if self.full:
            raise DiskFull("no room")
        await super().append(seen)


def seen(n: int) -> Seen:
    return Seen(time=moment(n), action="machine.exec", detail={"n": n})


async def test_what_there_is_no_room_for_is_counted_in_an_entry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.audit.recorder.RETRY_SECONDS", 0.01)
    book = Balky()
    recorder = Recorder(book, replace(QUICK, audit_queue_max=3, audit_wait_seconds=0.02))
    async with recorder.running():
        for n in range(5):
            await recorder.record(seen(n), wait=n == 4)  # nobody waits for ever
        assert (recorder.waiting, recorder.dropped) == (3, 2)
        book.full = False
    assert [(e.action, e.detail) for e in book.kept] == [*(("machine.exec", {"n": n}) for n in range(3)), ("audit.dropped", {"entries": 2})]


async def test_a_full_queue_makes_a_call_wait_a_little_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.audit.recorder.RETRY_SECONDS", 0.01)
    book = Balky()
    recorder = Recorder(book, replace(QUICK, audit_queue_max=1, audit_wait_seconds=5.0))
    async with recorder.running():
        await recorder.record(seen(0), wait=False)
        waits = asyncio.ensure_future(recorder.record(seen(1), wait=True))
        await asyncio.sleep(0)
        book.full = False
        await waits
        assert (len(book.kept), recorder.dropped) == (2, 0)


UNSEALABLE: dict[str, dict[str, Any]] = {
    "not a number": {"detail": {"n": float("nan")}},
    "no JSON": {"detail": {"n": object()}},
    "half a character": {"machine": "\ud800"},
    "no time": {"time": "noon"},
}


@pytest.mark.parametrize("what", UNSEALABLE)
async def test_an_entry_that_cannot_be_written_down_is_replaced_and_the_others_are_written(what: str, tmp_path: Path) -> None:
    store = await SqlStore.open(tmp_path / "store.db")
    recorder = Recorder(store.audit, QUICK, clock=lambda: 5.0)
    async with recorder.running():
        await recorder.record(seen(1), wait=False)
        await recorder.record(replace(seen(2), request="abc", **UNSEALABLE[what]), wait=False)
        await recorder.record(seen(3), wait=True)
        found = await store.audit.entries(AuditQuery())
    await store.close()
    assert [e.action for e in found] == ["machine.exec", "audit.unreadable", "machine.exec"]
    assert (found[1].request, found[1].detail) == ("abc", {"action": "machine.exec"})


async def test_old_entries_are_let_go_as_the_settings_say() -> None:
    book = MemoryAudit()
    recorder = Recorder(book, replace(QUICK, audit_age_days=1.0), clock=lambda: 200_000.0)
    await book.append([seen(1), seen(100_000), seen(150_000)])
    assert await recorder.prune() == 2
    assert await Recorder(book, replace(QUICK, audit_age_days=0.0), clock=lambda: 1e9).prune() == 0


async def test_a_clock_that_is_set_years_ahead_makes_nothing_old() -> None:
    now = [200_000.0]
    book = MemoryAudit()
    recorder = Recorder(book, replace(QUICK, audit_age_days=1.0), clock=lambda: now[0])
    await book.append([seen(150_000), seen(160_000)])
    now[0] += 2 * 365 * 86_400
    assert await recorder.prune() == 0


class Pruned(MemoryAudit):
    """Says when it was."""

    def __init__(self) -> None:
        super().__init__()
        self.times: asyncio.Queue[int] = asyncio.Queue()

    async def prune(self, before_ms: int, bytes_max: int, at: float) -> int:
        gone = await super().prune(before_ms, bytes_max, at)
        self.times.put_nowait(gone)
        return gone


async def test_old_entries_are_let_go_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.audit.recorder.FIRST_PRUNE_SECONDS", 0.01)
    monkeypatch.setattr("everforge.audit.recorder.PRUNE_SECONDS", 0.01)
    book = Pruned()
    await book.append([seen(1), seen(2)])
    async with asyncio.timeout(5), Recorder(book, replace(QUICK, audit_age_days=1.0)).running():
        assert [await book.times.get(), await book.times.get()] == [2, 0]
    assert [e.action for e in book.kept] == ["audit.prune"]


async def test_old_entries_are_let_go_as_soon_as_there_are_too_many() -> None:
    book = Pruned()
    recorder = Recorder(book, replace(QUICK, audit_bytes_max=1024 * 1024, audit_age_days=0.0, audit_account_days=0.1))
    async with asyncio.timeout(10), recorder.running():
        for _ in range(12):
            for n in range(10):
                await recorder.record(replace(seen(n), detail={"text": "x" * 10_000}), wait=n == 9)
        while not await book.times.get():
            pass
        assert sum(map(size_bytes, book.kept)) <= 1.1 * 1024 * 1024


async def test_counts_are_entries_before_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.audit.recorder.COUNT_SECONDS", 0.01)
    book = MemoryAudit()
    recorder = Recorder(book, replace(QUICK, audit_account_days=1e6))
    async with asyncio.timeout(5), recorder.running():
        counted = [await recorder.record(seen(n), wait=False) for n in range(3)]
        while len(book.kept) < 3:
            await asyncio.sleep(0.005)
        assert [e.detail for e in book.kept] == [{"n": 0}, {"n": 1}, {"counted": 1, "since": moment(2)}]
    assert counted == [0, 0, 1]


def test_many_of_one_kind_take_no_room_from_others_and_a_day_later_there_is_room_again() -> None:
    now = 0.0
    allowance = Allowance(256_000, lambda: now)  # 192,000 bytes of any kind, and 1,000 of each

    def some(count: int, **values: Any) -> list[int]:
        return [allowance.count(replace(seen(n), **{"account": "ada", **values})) for n in range(count)]

    own = some(1000).index(1)
    assert 400 < own < 500
    assert some(3, action="token.create") == some(3, outcome="MachineNotFound") == [0, 0, 0]
    assert some(3, account="bob") == some(3, account=None) == [0, 0, 0]
    assert some(10, action="token.create", token="t1")[-1] > 1
    assert some(1, action="token.create", token="t2", machine="one") != [0]
    taken = {one.action: one for one in allowance.take()}
    assert taken["machine.exec"].detail == {"counted": 1000 - own, "since": moment(own)}
    assert (taken["token.create"].token, taken["token.create"].machine, allowance.take()) == (None, None, [])
    assert some(3, outcome="MachineNotFound", detail={"left_out": 7})[-1] > 0
    assert [one.detail["left_out"] for one in allowance.take()] == [21]
    now = 24 * 3600.0 + 1
    assert some(3) == [0, 0, 0]


async def test_that_young_entries_were_let_go_is_in_the_servers_log(caplog: pytest.LogCaptureFixture) -> None:
    for age_days, told in ((1.0, True), (100.0, False)):
        caplog.clear()
        book = MemoryAudit()
        recorder = Recorder(book, replace(QUICK, audit_bytes_max=1024 * 1024))
        await book.append([Seen(time=moment(time.time() - age_days * 86_400), action="machine.exec", detail={"text": "x" * 10_000})] * 120)
        assert await recorder.prune() > 0
        assert ("reaches back no more than 1.0 days" in caplog.text) is told


def test_of_many_refusals_the_first_are_entries_and_the_others_a_number() -> None:
    now = 0.0
    refusals = Refusals(2, lambda: now)
    assert [refusals.admit("a")[0] for _ in range(5)] == [True, True, False, False, False]
    assert refusals.admit("b") == (True, 0)
    now = 61.0
    assert refusals.admit("a") == (True, 3)
