"""Refusals of one address or account, of which the first few are entries and the others a number: nobody can push the log out with bad requests."""

from __future__ import annotations

import time
from collections.abc import Callable

from everforge.windows import Windows

SECONDS = 60.0
REMEMBERED_MAX = 10_000  # addresses, or accounts; beyond it the oldest is forgotten


class Refusals:
    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._windows = Windows[str](SECONDS, REMEMBERED_MAX)

    def admit(self, who: str) -> tuple[bool, int]:
        """Is this one to be an entry? And how many of the same were not, since the last that was told."""
        window = self._windows.at(who, self._clock())
        left_out = 0 if window.count else max(0, window.before - self._per_minute)  # the first of a window tells of the one before
        window.count += 1
        return window.count <= self._per_minute, left_out
