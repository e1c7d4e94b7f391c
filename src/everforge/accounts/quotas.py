"""The quota of each account: what the owner of the server set for it, and the settings' defaults for the rest. The owner's own account has none
unless it is set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from everforge.store.accounts import AccountBook
from everforge.store.quotas import UNLIMITED, Quota, QuotaRecord
from everforge.wire.errors import InvalidInput
from everforge.wire.ids import OWNER, AccountId
from everforge.wire.sentences import show

from .settings import RATE_MIN, AccountSettings

KNOWN_MAX = 10_000
MOST = 2**53  # what every reader of JSON can count to
AS_THE_SERVER = -1  # back to what the settings say


class AccountQuotas:
    def __init__(self, book: AccountBook, settings: AccountSettings) -> None:
        self._book = book
        s = settings
        self.default = Quota(
            machines=s.account_machines_max, awake=s.account_awake_max, memory_mb=s.account_memory_mb_max, disk_mb=s.account_disk_mb_max,
            requests_per_second=s.account_requests_per_second, egress_bytes_per_day=s.account_egress_bytes_per_day,
        )  # fmt: skip
        self._known: dict[AccountId, Quota] = {}
        self._generation = 0  # another number: one was changed

    def known(self, account: AccountId) -> Quota | None:
        """Without a look into the store."""
        return self._known.get(account)

    async def of(self, account: AccountId) -> Quota:
        while (found := self._known.get(account)) is None:
            generation = self._generation
            record = await self._book.quota(account)
            if generation == self._generation:  # else what was read may be older than what is known by now
                return self._remember(account, self.over_default(account, record))
        return found

    def _remember(self, account: AccountId, quota: Quota) -> Quota:
        if account not in self._known and len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[account] = quota
        return quota

    def over_default(self, account: AccountId, record: QuotaRecord) -> Quota:
        return record.over(UNLIMITED if account == OWNER else self.default)

    async def change(self, account: AccountId, given: Mapping[str, Any]) -> Quota:
        """What is not named stays, also when it is changed at the same time. Raises InvalidInput, AccountNotFound."""
        values = check_quota(given)
        try:
            return self.over_default(account, await self._book.change_quota(account, values))
        finally:
            self._generation += 1
            self._known.pop(account, None)  # not what came of this one: of two at once, the first may be answered last


_FLOATS = {f.name for f in fields(Quota) if f.type == "float"}


def check_quota(given: Mapping[str, Any]) -> dict[str, Any]:
    """Raises InvalidInput."""
    return {name: _value(name, value) for name, value in given.items()}


def _value(name: str, value: Any) -> Any:
    if value == AS_THE_SERVER:
        return None
    good = type(value) is int or (name in _FLOATS and type(value) is float and math.isfinite(value))
    if good and name == "requests_per_second" and 0 < value < RATE_MIN:
        raise InvalidInput(f"{name} is at least {RATE_MIN:g}, or 0 for no limit, not {show(value)}")
    if not good or not 0 <= value <= MOST:
        raise InvalidInput(f"{name} must be a number up to {MOST}, 0 for no limit, -1 for what the server's settings say, not {show(value)}")
    return value
