"""How much of the log one account may fill. What it does beyond that is counted, each kind by itself, and the counts are entries: by doing much
nobody pushes out what others did, nor what they did themselves before.

Only the beginning of a chain can be let go. So it cannot be the loudest who lose their entries; they are kept from having so many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from everforge.store.audit import ENTRY_BYTES, size_bytes
from everforge.windows import Windows
from everforge.wire.audit import OK, Seen

DAY_SECONDS = 24 * 3600.0
COMMON_SHARE = 0.75  # of what an account has in a day, for whatever it does; the rest is kept
KIND_SHARE = 1 / 256  # for each kind of act, done or refused, of which there are some 70: many of one do not hide another
ACCOUNTS_MAX = 10_000  # whose bytes are counted; beyond it the one that began first begins anew
KINDS_MAX = 50_000
COUNTS_MAX = 1_000  # kinds of acts that are counted at a time; then the counts are written early
STRANGERS = ""  # all who come without a good token have one account's share together: addresses are had by the thousand


@dataclass(slots=True)
class _Count:
    common: Seen  # the last of them, without what they do not share
    since: str
    times: int = 0
    left_out: int = 0  # refusals that were left out before these, and would have been told by them

    def add(self, seen: Seen) -> None:
        one, self.times = self.common, self.times + 1
        self.left_out += seen.detail.get("left_out", 0)
        self.common = replace(
            seen,
            token=seen.token if seen.token == one.token else None,
            machine=seen.machine if seen.machine == one.machine else None,
            address=seen.address if seen.address == one.address else None,
        )

    def entry(self) -> Seen:
        left_out = {"left_out": self.left_out} if self.left_out else {}
        return replace(self.common, request=None, detail={"counted": self.times, "since": self.since, **left_out})


class Allowance:
    def __init__(self, bytes_per_day: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._common_bytes = bytes_per_day * COMMON_SHARE
        self._kind_bytes = bytes_per_day * KIND_SHARE
        self._accounts = Windows[str](DAY_SECONDS, ACCOUNTS_MAX)
        self._kinds = Windows[tuple[str, str, bool]](DAY_SECONDS, KINDS_MAX)
        self._counts: dict[tuple[str, str, str], _Count] = {}

    @property
    def is_full(self) -> bool:
        return len(self._counts) >= COUNTS_MAX

    def count(self, seen: Seen) -> int:
        """0: it is to be an entry. Otherwise how many of its kind were counted instead, with this one, since the counts were taken."""
        who, now, size = seen.account or STRANGERS, self._clock(), _size_bytes(seen)
        of_kind = self._kinds.at((who, seen.action, seen.outcome == OK), now)
        if of_kind.count < self._kind_bytes:
            of_kind.count += size
            return 0
        of_account = self._accounts.at(who, now)
        if of_account.count < self._common_bytes:
            of_account.count += size
            return 0
        count = self._counts.setdefault((who, seen.action, seen.outcome), _Count(seen, seen.time))
        count.add(seen)
        return count.times

    def take(self) -> list[Seen]:
        """The counts since they were taken last, each of them one entry."""
        taken = [count.entry() for count in self._counts.values()]
        self._counts.clear()
        return taken


def _size_bytes(seen: Seen) -> int:
    try:
        return size_bytes(seen)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return ENTRY_BYTES  # one that cannot be written down: a short one stands in its place
