"""What must be looked at again and again: who computes without a pause, memory where there are no control groups, and the size of logs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

from . import bundle
from .cgroups import Cgroups
from .sandboxes import Sandboxes

MEMORY_SECONDS = 0.25  # a guest fills some 500 MB in that time: without control groups the limit is not sharper than that
PROCESSORS_SECONDS, PROCESSORS_SECONDS_EACH = 0.25, 0.001  # a look at one takes some 30 microseconds: never more than a few per cent of a processor
COMPUTES, RESTS = 0.5, 0.25  # of one processor, between two looks
# Who begins again within so many looks must rest twice as long, up to so many: a flood comes in waves, and who gives way on a busy computer gets so
# little that it seems to rest. Who was asked for something, and computed, rests once.
AGAIN_LOOKS, RESTING_LOOKS_MAX = 8, 128
SLOW_SECONDS = 10.0
LOG_BYTES_MAX = 1024 * 1024  # of one sandbox; runsc appends, so a cut log goes on at its start


async def watch_memory(sandboxes: Sandboxes) -> None:
    while True:
        await asyncio.sleep(MEMORY_SECONDS)
        for held in sandboxes.all():
            if held.sentry is not None and sandboxes.usage_bytes(held) > bundle.memory_bytes(held.memory_mb):
                sandboxes.kill_over_memory(held)


@dataclass(slots=True)
class Habit:
    """What one sandbox does with processors."""

    gives_way: bool = False
    quiet_looks: int = AGAIN_LOOKS  # in a row, since it last computed, or since it no longer gives way
    resting_looks: int = 1  # until it no longer does

    def look(self, part: float) -> bool:
        """It has used this part of a processor since the last look. Does it give way now?"""
        if part < (RESTS if self.gives_way else COMPUTES):
            self.quiet_looks += 1
            if self.gives_way and self.quiet_looks >= self.resting_looks:
                self.gives_way, self.quiet_looks = False, 0
            return self.gives_way
        if not self.gives_way:
            self.resting_looks = 1 if self.quiet_looks >= AGAIN_LOOKS else min(2 * self.resting_looks, RESTING_LOOKS_MAX)
        self.gives_way, self.quiet_looks = True, 0
        return True


async def watch_processors(sandboxes: Sandboxes, groups: Cgroups) -> None:
    """One that computes without a pause gives way to those that were just asked for something: a bomb is no harm to its neighbours then. Several that
    compute are equals again."""
    loop = asyncio.get_running_loop()
    used: dict[str, float] = {}  # seconds of processors at the last look
    habits: dict[str, Habit] = {}
    looked_at = loop.time()
    while True:
        await asyncio.sleep(PROCESSORS_SECONDS + len(used) * PROCESSORS_SECONDS_EACH)
        now = loop.time()
        before, used = used, {held.id: seconds for held in sandboxes.all() if (seconds := groups.cpu_seconds(held.id)) is not None}
        habits = {id: habits.get(id) or Habit() for id in used}
        for id, seconds in used.items():
            gave_way = habits[id].gives_way
            gives_way = habits[id].look((seconds - before.get(id, seconds)) / (now - looked_at))
            if gives_way != gave_way or id not in before:  # one that is new to us may give way since an earlier warden's days
                groups.weigh(id, gives_way=gives_way)
        looked_at = now


async def watch_slowly(sandboxes: Sandboxes) -> None:
    while True:
        await asyncio.sleep(SLOW_SECONDS)
        for held in sandboxes.all():
            sandboxes.note_memory_kills(held)
            if held.runsc.log_size() > LOG_BYTES_MAX:
                with contextlib.suppress(OSError):
                    os.truncate(held.runsc.log, 0)
