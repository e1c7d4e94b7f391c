"""A guard over the sum of the user's memory: rlimits bound each process, and many small ones could still take the whole sandbox down."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from . import processes
from .limits import MIB
from .processes import Process

LOOK_SECONDS = 0.2
PUT_OFF_SECONDS = 0.02
WATCHFUL_SHARE = 0.5  # above it we look also while no instruction runs


class MemoryGuard:
    def __init__(self) -> None:
        self.memory_mb = 0
        self._next_look = 1.0  # long ago, and true
        self._watchful = False
        self._owed = False  # a look that was put off

    def next_look(self, running: bool) -> float | None:
        """When; None when there is nothing to watch, so that an idle machine sleeps."""
        return self._next_look if self.memory_mb and (running or self._watchful or self._owed) else None

    def put_off(self, now: float) -> None:
        """An instruction begins: most are over in no time, and should not wait for a look. It is made up for soon, running or not."""
        if now >= self._next_look:
            self._next_look = now + PUT_OFF_SECONDS
            self._owed = True

    def look(self, now: float, running: bool, interpreter: int | None) -> tuple[Process, str] | None:
        """The process that was killed, if one had to be, and why."""
        due = self.next_look(running)
        if due is None or now < due:
            return None
        self._next_look = now + LOOK_SECONDS
        self._owed = False
        found = processes.user_processes()
        used_mb = self._used_mb(found)
        self._watchful = used_mb > self.memory_mb * WATCHFUL_SHARE
        if used_mb <= self.memory_mb or not found:
            return None
        largest = _to_end(found, interpreter)
        processes.send_signal(largest.pid, signal.SIGKILL)
        return largest, f"out of memory: {used_mb} MB in use, {self.memory_mb} MB allowed; killed the largest process, {largest.pid}"

    def _used_mb(self, found: list[Process]) -> int:
        """Pages that forked processes share are counted for each of them, so a large sum is checked against what the kernel has given out."""
        summed_mb = sum(p.rss_pages for p in found) * os.sysconf("SC_PAGE_SIZE") // MIB
        if summed_mb <= self.memory_mb or not processes.is_init():
            return summed_mb
        return min(summed_mb, _given_out_mb())


def _to_end(found: list[Process], interpreter: int | None) -> Process:
    """The largest; but the interpreter, which holds the user's variables, only when it is larger than all the others together."""
    others = [p for p in found if p.pid != interpreter]
    itself = sum(p.rss_pages for p in found) - sum(p.rss_pages for p in others)
    if others and itself <= sum(p.rss_pages for p in others):
        return max(others, key=lambda p: p.rss_pages)
    return max(found, key=lambda p: p.rss_pages)


def _given_out_mb() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
    return (int(fields["MemTotal"].split()[0]) - int(fields["MemAvailable"].split()[0])) // 1024
