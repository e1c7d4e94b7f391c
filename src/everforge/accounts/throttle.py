"""How many requests a second: a bucket of tokens for each account, and for each address that comes without a good token."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from everforge.store.quotas import Quota
from everforge.wire.errors import TooMany
from everforge.wire.ids import AccountId

from .rates import customer
from .settings import RATE_MIN, AccountSettings

KEYS_MAX = 10_000  # accounts, and as many addresses; beyond it who came longest ago is forgotten, and begins with a full bucket


class Buckets:
    """Each fills at its own rate, up to what comes in so many seconds: a short burst passes."""

    def __init__(self, burst_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst_seconds = burst_seconds
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}  # tokens, and when that was; in that order

    def take(self, key: str, per_second: float) -> float:
        """One token. Seconds to wait where there is none; then none was taken."""
        now, most = self._clock(), max(1.0, per_second * self._burst_seconds)
        level, at = self._levels.pop(key, (most, now))
        level = min(most, level + (now - at) * per_second)
        if len(self._levels) >= KEYS_MAX:
            del self._levels[next(iter(self._levels))]
        if level < 1.0:
            self._levels[key] = (level, now)
            return (1.0 - level) / per_second
        self._levels[key] = (level - 1.0, now)
        return 0.0

    def __len__(self) -> int:
        return len(self._levels)


class Throttle:
    def __init__(self, settings: AccountSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_accounts = Buckets(settings.request_burst_seconds, clock)
        self._of_strangers = Buckets(settings.request_burst_seconds, clock)  # apart: who comes from many addresses makes no account forgotten
        self._stranger_rate = settings.stranger_requests_per_second

    def count(self, account: AccountId, quota: Quota) -> None:
        """A request of an account. Raises TooMany."""
        if quota.requests_per_second:
            self._take(self._of_accounts, account, quota.requests_per_second, "this account")

    def count_stranger(self, address: str) -> None:
        """One of somebody whom nobody knows yet. Raises TooMany."""
        if self._stranger_rate:
            self._take(self._of_strangers, customer(address), self._stranger_rate, "who comes without a token that is known here")

    def _take(self, buckets: Buckets, key: str, per_second: float, who: str) -> None:
        per_second = max(per_second, RATE_MIN)  # a store may hold one that was set when less was taken
        if wait := buckets.take(key, per_second):
            message = f"{who} may send {per_second:g} requests a second: try again in {wait:.1f} seconds"
            raise TooMany(message, limit="requests_per_second", retry_after_seconds=math.ceil(wait))
