"""How much may pass through one machine's door, and how fast."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass

DAY_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """0: no limit."""

    bytes_per_second: int = 100 * 1024 * 1024  # both directions together
    bytes_per_day: int = 100 * 1024 * 1024 * 1024
    connections_per_second: int = 50
    connections_burst: int = 200
    idle_seconds: float = 600.0  # of a connection over which nothing moves
    head_seconds: float = 30.0  # for a request's head, or the beginning of TLS, to arrive


class OverLimit(Exception):
    """A sentence that names the limit, and how long it takes until there is room again."""

    def __init__(self, sentence: str, limit: str, seconds: float = 1.0) -> None:
        super().__init__(sentence)
        self.limit = limit  # by the name of its setting, or quota
        self.seconds = max(1, math.ceil(seconds))


class Day:
    """What has passed since its first byte. A server that restarts begins a new one."""

    def __init__(self) -> None:
        self._began = 0.0
        self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes if self._left_seconds > 0 else 0

    def add(self, count: int) -> None:
        before = self.bytes
        if not before:
            self._began = time.monotonic()
        self._bytes = before + count

    def full(self, sentence: str, limit: str) -> OverLimit:
        left = self._left_seconds
        return OverLimit(f"{sentence}; there is room again in {_spoken(left)}", limit, left)

    @property
    def _left_seconds(self) -> float:
        return self._began + DAY_SECONDS - time.monotonic()


def _spoken(seconds: float) -> str:
    for unit, name in ((3600, "hours"), (60, "minutes")):
        if seconds > 2 * unit:
            return f"{math.ceil(seconds / unit)} {name}"
    return f"{math.ceil(seconds)} seconds"


class Meter:
    """Of one machine."""

    def __init__(self, limits: EgressLimits) -> None:
        self.limits = limits
        self._tokens = float(limits.connections_burst)
        self._tokens_at = time.monotonic()
        self._free_at = 0.0  # when what has passed is paid for, at the rate
        self._day = Day()

    def connect(self) -> None:
        """Raises OverLimit."""
        if self.limits.bytes_per_day and self._day.bytes >= self.limits.bytes_per_day:
            raise self._over_day()
        if not self.limits.connections_per_second:
            return
        now = time.monotonic()
        self._tokens = min(float(self.limits.connections_burst), self._tokens + (now - self._tokens_at) * self.limits.connections_per_second)
        self._tokens_at = now
        if self._tokens < 1:
            most = self.limits.connections_per_second
            raise OverLimit(f"this machine may begin {most} connections a second, and began more; wait a little", "egress_connections_per_second")
        self._tokens -= 1

    async def pass_bytes(self, count: int) -> None:
        """Waits until it is their turn. Raises OverLimit."""
        now = time.monotonic()
        self._day.add(count)
        if self.limits.bytes_per_day and self._day.bytes > self.limits.bytes_per_day:
            raise self._over_day()
        if self.limits.bytes_per_second:
            self._free_at = max(now, self._free_at) + count / self.limits.bytes_per_second
            if (ahead := self._free_at - now) > 0.05:
                await asyncio.sleep(ahead - 0.025)

    def _over_day(self) -> OverLimit:
        return self._day.full(f"this machine may exchange {self.limits.bytes_per_day} bytes a day with the outside, and has", "egress_bytes_per_day")
