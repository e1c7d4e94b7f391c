"""What the machines of an account may exchange with the outside in a day."""

from __future__ import annotations

import pytest

from everforge.egress.allowances import Allowances, Spending
from everforge.egress.limits import DAY_SECONDS, OverLimit
from everforge.store.quotas import Quota
from everforge.wire.errors import DiskFull
from everforge.wire.ids import AccountId

ADA, BOB = AccountId("ada"), AccountId("bob")


class Quotas:
    def __init__(self, egress_bytes_per_day: int) -> None:
        self.quota = Quota(egress_bytes_per_day=egress_bytes_per_day)

    async def of(self, account: AccountId) -> Quota:
        return self.quota if account == ADA else Quota()


class Book:
    def __init__(self) -> None:
        self.sums: dict[AccountId, int] = {}
        self.full = False

    async def add(self, account: AccountId, count: int) -> None:
        if self.full:
            raise DiskFull("no room")
        self.sums[account] = self.sums.get(account, 0) + count


async def test_two_machines_of_one_account_share_its_day_and_others_do_not() -> None:
    allowances = Allowances(Book().add)
    allowances.quotas = Quotas(100)
    first, second, others = Spending(allowances, ADA), Spending(allowances, ADA), Spending(allowances, BOB)
    await first.check()
    first.spend(60)
    with pytest.raises(OverLimit, match="100 bytes a day"):
        second.spend(60)
    with pytest.raises(OverLimit, match="there is room again in 24 hours") as over:
        await first.check()
    assert DAY_SECONDS - 60 < over.value.seconds <= DAY_SECONDS
    await others.check()
    others.spend(10_000)


async def test_a_quota_that_is_raised_counts_for_the_next_attempt() -> None:
    allowances = Allowances(Book().add)
    allowances.quotas = quotas = Quotas(10)
    spending = Spending(allowances, ADA)
    await spending.check()
    with pytest.raises(OverLimit):
        spending.spend(10)
    quotas.quota = Quota(egress_bytes_per_day=1000)
    await spending.check()
    spending.spend(10)


async def test_every_byte_is_told_to_the_usage_counters_once_also_when_the_disk_was_full() -> None:
    book = Book()
    allowances = Allowances(book.add)
    spending = Spending(allowances, ADA)
    spending.spend(5)
    await allowances.record()
    book.full = True
    spending.spend(7)
    with pytest.raises(DiskFull):
        await allowances.record()
    book.full = False
    await allowances.record()
    await allowances.record()
    assert book.sums == {ADA: 12}


async def test_an_account_that_holds_nothing_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now, book = 1000.0, Book()
    monkeypatch.setattr("everforge.egress.limits.time.monotonic", lambda: now)
    allowances = Allowances(book.add)
    for number in range(50):
        Spending(allowances, AccountId(f"account-{number}")).spend(number)
    await allowances.record()
    assert len(allowances) == 49  # the one that spent nothing has gone
    now += DAY_SECONDS
    await allowances.record()
    assert len(allowances) == 0
    assert sum(book.sums.values()) == sum(range(50))


async def test_a_connection_that_outlasts_the_day_is_held_to_the_quota_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("everforge.egress.limits.time.monotonic", lambda: now)
    allowances = Allowances(Book().add)
    allowances.quotas = Quotas(100)
    spending = Spending(allowances, ADA)
    await spending.check()
    spending.spend(60)
    now += DAY_SECONDS
    await allowances.record()
    spending.spend(60)
    await allowances.record()
    with pytest.raises(OverLimit):
        spending.spend(60)


async def test_the_day_of_an_account_goes_on_when_its_machines_are_gone() -> None:
    allowances = Allowances(Book().add)
    allowances.quotas = Quotas(100)
    Spending(allowances, ADA).spend(100)
    await allowances.record()
    with pytest.raises(OverLimit):
        await Spending(allowances, ADA).check()
