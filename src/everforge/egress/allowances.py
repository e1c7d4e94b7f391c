"""What an account's machines together may exchange with the outside in a day, and what they have: told to the usage counters as it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from everforge.store.quotas import NoQuotas, Quotas
from everforge.wire.ids import AccountId

from .limits import Day

Spent = Callable[[AccountId, int], Awaitable[None]]


class Allowance:
    """Of one account."""

    def __init__(self) -> None:
        self.bytes_per_day = 0  # 0: no limit
        self._day = Day()
        self.unrecorded_bytes = 0

    @property
    def is_blank(self) -> bool:
        """Nothing was spent of it today, nor is anything left to tell."""
        return not self.unrecorded_bytes and not self._day.bytes

    def spend(self, count: int) -> None:
        """Raises OverLimit."""
        self.unrecorded_bytes += count
        self._day.add(count)
        self.check()

    def check(self) -> None:
        """Raises OverLimit."""
        if self.bytes_per_day and self._day.bytes >= self.bytes_per_day:
            words = f"the machines of this account may exchange {self.bytes_per_day} bytes a day with the outside, and have"
            raise self._day.full(words, "egress_bytes_per_day")


class Allowances:
    def __init__(self, spent: Spent) -> None:
        self.quotas: Quotas = NoQuotas()  # a server has those of its accounts
        self._spent = spent
        self._accounts: dict[AccountId, Allowance] = {}
        # A blank one is kept only by the doors that have it: they know the quota by it.
        self._blank: WeakValueDictionary[AccountId, Allowance] = WeakValueDictionary()
        self._recording = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._accounts) + len(self._blank)

    def of(self, account: AccountId) -> Allowance:
        found = self._accounts.get(account) or self._blank.pop(account, None) or Allowance()
        self._accounts[account] = found
        return found

    async def check(self, account: AccountId) -> None:
        """By the quota as it is now. Raises OverLimit."""
        bytes_per_day = (await self.quotas.of(account)).egress_bytes_per_day
        allowance = self.of(account)
        allowance.bytes_per_day = bytes_per_day
        allowance.check()

    async def record(self) -> None:
        """What was spent since the last time; who has spent nothing is forgotten. Raises what the store does, and tells it again then."""
        async with self._recording:
            for account, allowance in list(self._accounts.items()):
                if count := allowance.unrecorded_bytes:
                    await self._spent(account, count)
                    allowance.unrecorded_bytes -= count
                if allowance.is_blank:
                    self._blank[account] = self._accounts.pop(account)


class Spending:
    """One account's, for the doors of its machines."""

    def __init__(self, allowances: Allowances, account: AccountId) -> None:
        self._allowances = allowances
        self._account = account
        self._allowance = allowances.of(account)  # held, so that it is not forgotten between two days

    async def check(self) -> None:
        """Raises OverLimit."""
        await self._allowances.check(self._account)

    def spend(self, count: int) -> None:
        """Raises OverLimit."""
        self._allowances.of(self._account).spend(count)
