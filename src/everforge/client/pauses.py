"""How long to go on trying, and how long to wait in between. No I/O."""

from __future__ import annotations

import random
import time

from .inputs import wait_seconds

FIRST_PAUSE_SECONDS = 0.05  # a server that is only just starting is there in a moment
PAUSE_SECONDS_MAX = 5.0
GROWTH = 2.0


class Patience:
    """So many seconds from the first failure on, and pauses that grow meanwhile, each shortened by chance so that many clients do not come back at
    once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """It went well: begin anew with the next failure."""
        self._until: float | None = None
        self._pause = FIRST_PAUSE_SECONDS

    def start(self) -> None:
        """The time runs from now on, whenever the first failure comes."""
        self._until = time.monotonic() + self._seconds

    def pause(self, at_least: float = 0.0) -> float | None:
        """Seconds to wait before the next try; None when there is to be none."""
        if self._until is None:
            self.start()
        wanted = max(at_least, self._pause * random.uniform(0.5, 1.0))
        self._pause = min(self._pause * GROWTH, PAUSE_SECONDS_MAX)
        return wanted if self._until is not None and time.monotonic() + wanted <= self._until else None


class Deadline:
    """A point in time that may be never."""

    def __init__(self, seconds: float | None) -> None:
        wait_seconds(seconds)
        self._until = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds; None when it never comes."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    @property
    def passed(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def within(self, seconds: float) -> float:
        """At most these seconds, and less when it comes sooner; never quite nothing, since some clocks read that as for ever."""
        return seconds if self._until is None else max(0.001, min(seconds, self._until - time.monotonic()))
