"""A guard over the sum of the user's memory: rlimits bound each process, but many small ones, or memory that belongs to none of them (memfd), could
still take the whole sandbox down.

When the sum is over the limit everything of the user's is stopped, so that nothing grows while the guilty are found and ended, and we get to run at
all; the rest goes on when the memory has come back. That continues also what the user had stopped.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Generator
from typing import NamedTuple

from ..wire.messages import OUT_OF_MEMORY
from . import processes
from .limits import MIB
from .processes import Process
from .segments import Segments

LOOK_SECONDS = 0.2
LOOK_SECONDS_MIN = 0.01
FASTEST_MB_PER_SECOND = 4000  # memory cannot be filled faster than this: so soon must be looked again
SPARE_MB = 32  # over the limit the host still bears, beside what the sandbox takes for itself
PROCESS_MB = 1  # what a process costs the sandbox beside its own memory
PUT_OFF_SECONDS = 0.02
WATCHFUL_SHARE = 0.5  # above it we look also while no instruction runs
ROOM_SHARE = 0.2  # of the limit is made free at once, or the next look would have to end the next process
FEW = 4
AGAIN_SECONDS = 2.0  # over the limit twice within this time: then it is no use to end them one by one
RETURN_SECONDS = 0.3  # for the memory of the dead to come back, before more have to die
LATE_SECONDS = 0.03
MANY_FACTOR = 1.5
CROWD_FACTOR = 2.5
REACTION_SECONDS = 0.08  # of ours, while many compete with us
CROWD = 16  # processes
CROWD_SHARE = 0.25  # of the limit, at most, is kept free of a crowd for what it fills in a second
CALM_FACTOR = 1.2  # longer pauses while nothing grows, but not at once: they may have been about to
AGENT_MB = 16  # our own memory, which is not the user's


class Ended(NamedTuple):
    """Processes that were killed to save the others, and why; none when it was enough to remove what was nobody's."""

    pids: list[int]
    why: str


class MemoryGuard:
    def __init__(self) -> None:
        self.memory_mb = 0
        self._segments = Segments()
        self._next_look = 1.0  # long ago, and true
        self._pause = LOOK_SECONDS
        self._watchful = False
        self._owed = False  # a look that was put off
        self._used_mb = 0
        self._stopped = False  # until the memory is back
        self._struck_at = -AGAIN_SECONDS
        self._looked_at = 0.0
        self._count = 0
        self._growing = False

    def next_look(self, running: bool) -> float | None:
        """When; None when there is nothing to watch, so that an idle machine sleeps."""
        watched = self.memory_mb and (running or self._watchful or self._owed)
        return self._next_look if watched or self._stopped else None

    def put_off(self, now: float) -> None:
        """An instruction begins: most are over in no time, and should not wait for a look. It is made up for soon, running or not."""
        if now >= self._next_look:
            self._next_look = now + PUT_OFF_SECONDS
            self._owed = True

    def look(self, running: bool, interpreter: int | None) -> Ended | None:
        """Those that had to be killed, if it was time to look and any had to."""
        due = self.next_look(running)
        if due is None or (now := time.monotonic()) < due:
            return None
        self._owed = False
        waiting = self._stopped
        crowded = self._count >= CROWD and self._growing
        if crowded or (self._watchful and (self._count >= processes.MANY or now - due > LATE_SECONDS)):
            self._stop()  # they may leave us so little time that the look itself would take too long
        grown_mb = self._measure()
        ended = None
        if not self.memory_mb or self._used_mb + self._expected_mb(grown_mb, now) <= self.memory_mb:
            self._release()
        elif not waiting or now > self._struck_at + RETURN_SECONDS:
            ended = self._strike(now, interpreter)
        self._looked_at = now
        self._next_look = time.monotonic() + self._pause_seconds(grown_mb > 0)
        return ended

    @contextlib.contextmanager
    def quiet(self) -> Generator[None]:
        """Time for us where many processes compete for it: a fork bomb would outrun any list of its members."""
        if self._stopped or self._count < processes.MANY:
            yield
            return
        self._stop()
        yield
        self._release()

    def _measure(self) -> int:
        """How much it has grown."""
        before, (self._used_mb, self._count) = self._used_mb, _used_mb()
        self._watchful = self._used_mb > self.memory_mb * WATCHFUL_SHARE
        self._growing = self._used_mb > before
        return self._used_mb - before

    def _expected_mb(self, grown_mb: int, now: float) -> int:
        """What many may take on top before we get to look again, beyond what is spare: as much as since the last look, or more."""
        if self._count < processes.MANY or grown_mb <= 0 or now - self._looked_at > AGAIN_SECONDS:
            return 0
        mb_per_second = grown_mb / (now - self._looked_at)
        if self._count < CROWD:
            return max(0, int(max(grown_mb * MANY_FACTOR, mb_per_second * REACTION_SECONDS)) - SPARE_MB)
        # A crowd may not let us run for a second or more; how long it was since the last look tells.
        return int(max(grown_mb * CROWD_FACTOR, min(mb_per_second, self.memory_mb * CROWD_SHARE)))

    def _pause_seconds(self, grows: bool) -> float:
        """As long as it would take to fill what is left; longer each time when nothing grows."""
        soonest = max(LOOK_SECONDS_MIN, (self.memory_mb - self._used_mb) / FASTEST_MB_PER_SECOND)
        wanted = soonest if grows or self._stopped else max(soonest, self._pause * CALM_FACTOR)
        self._pause = min(wanted, LOOK_SECONDS)
        return self._pause

    def _strike(self, now: float, interpreter: int | None) -> Ended | None:
        """What is nobody's goes before anybody does; but who fills the place again at once would do so until the host bears it no more."""
        self._stop()
        again, self._struck_at = now <= self._struck_at + AGAIN_SECONDS, now
        growing = "" if self._used_mb > self.memory_mb else " and rapidly filled"
        why = f"{OUT_OF_MEMORY}{self._used_mb} MB in use, {self.memory_mb} MB allowed{growing}"
        removed = self._segments.remove_orphans()
        if removed.segments:
            why += f"; removed shared memory that no process was attached to: {removed}"
            self._measure()
            if self._used_mb <= self.memory_mb and not again:
                return Ended([], why)
        found = [p for p in processes.user_processes() if p.state not in processes.DEAD]
        guilty = choose(found, interpreter, self._used_mb, self.memory_mb, again)
        if not guilty:  # the dead are on their way
            return Ended([], why) if removed.segments else None
        processes.kill_all(guilty)
        whom = f"the largest process, {guilty[0].pid}" if len(guilty) == 1 else f"{len(guilty)} processes, the largest of them {guilty[0].pid}"
        return Ended([p.pid for p in guilty], f"{why}; killed {whom}")

    def _stop(self) -> None:
        processes.send_everyone(signal.SIGSTOP)
        self._stopped = True

    def _release(self) -> None:
        if self._stopped:
            processes.send_everyone(signal.SIGCONT)
            self._stopped = False


def choose(found: list[Process], interpreter: int | None, used_mb: int, allowed_mb: int, again: bool) -> list[Process]:
    """Who must end, the largest first.

    The interpreter, which holds the user's variables, only when it is larger than all the others together, or alone. Where what the processes have
    does not explain what is used (a memfd is nobody's), or it would take more than a few, or a few did not help, all the others.
    """
    others = sorted((p for p in found if p.pid != interpreter), key=lambda p: p.rss_pages, reverse=True)
    itself = [p for p in found if p.pid == interpreter]
    if not others:
        return itself
    others_mb, itself_mb = sum(map(_rss_mb, others)), sum(map(_rss_mb, itself))
    if again or others_mb + itself_mb < used_mb / 2:
        return others
    if itself_mb > others_mb:
        return itself
    wanted_mb = used_mb - allowed_mb * (1 - ROOM_SHARE)
    guilty: list[Process] = []
    while others and sum(map(_rss_mb, guilty)) < wanted_mb:
        guilty.append(others.pop(0))
    return guilty if len(guilty) <= FEW else guilty + others


def _rss_mb(process: Process) -> float:
    return process.rss_pages * _PAGE_BYTES / MIB


def _used_mb() -> tuple[int, int]:
    """And by how many processes.

    In a sandbox it is what its kernel has given out and cannot take back: memory of all processes, shared pages once, and of files without a disk.
    """
    if not processes.is_init():
        found = processes.user_processes()
        return int(sum(map(_rss_mb, found))), len(found)
    count = processes.count()
    given_out = _ANON_PAGES.search(processes.read_file("/proc/meminfo"))
    return 0 if given_out is None else int(given_out[1]) // 1024 - AGENT_MB + PROCESS_MB * count, count


_ANON_PAGES = re.compile(rb"AnonPages:\s*(\d+) kB")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
