"""Is there memory for one more awake machine? If not, the one that has been idle longest is put to sleep first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from everforge.wire.errors import NoCapacity
from everforge.wire.ids import MachineId

LOOK_AGAIN_SECONDS = 0.25  # a machine may become idle, or its owner delete it, without telling us


class Sleeper(Protocol):
    """A keeper, as far as admission knows it."""

    @property
    def id(self) -> MachineId: ...

    @property
    def idle_since(self) -> float | None:
        """Monotonic seconds; None while it is busy, asleep or on its way."""
        ...

    async def make_room(self) -> bool:
        """Hibernate if still idle; False when it could not."""
        ...


class Admission:
    def __init__(self, budget_mb: int, sleepers: Callable[[], Iterable[Sleeper]]) -> None:
        self._budget_mb = budget_mb
        self._sleepers = sleepers
        self._taken: dict[MachineId, int] = {}
        self._freed = asyncio.Event()
        self._asking = asyncio.Lock()  # one at a time: two newcomers must not count on the same sleeper
        self._set_aside_mb = 0  # freed for the one that asks, and not to be taken by others

    @property
    def taken_mb(self) -> int:
        return sum(self._taken.values())

    @property
    def budget_mb(self) -> int:
        return self._budget_mb

    def take_over(self, machine: MachineId, memory_mb: int) -> None:
        """A machine that lives already counts, whether there is room or not."""
        self._taken[machine] = memory_mb

    def release(self, machine: MachineId) -> None:
        if self._taken.pop(machine, None) is not None:
            self._freed.set()

    async def admit(self, machine: MachineId, memory_mb: int, patience_seconds: float) -> None:
        if memory_mb > self._budget_mb:
            raise NoCapacity(f"this server has {self._budget_mb} MB for machines; one of {memory_mb} MB can never wake here")
        if self._fits(machine, memory_mb + self._set_aside_mb):  # a small one need not stand behind a large one that waits for room
            self._taken[machine] = memory_mb
            return
        try:
            async with asyncio.timeout(patience_seconds), self._asking:
                await self._make_room(machine, memory_mb)
                self._taken[machine] = memory_mb
        except TimeoutError:
            raise NoCapacity(
                f"no memory for {memory_mb} MB: {self.taken_mb} of {self._budget_mb} MB are taken by machines that are busy; try again later"
            ) from None

    def _fits(self, machine: MachineId, memory_mb: int) -> bool:
        return self.taken_mb - self._taken.get(machine, 0) + memory_mb <= self._budget_mb

    async def _make_room(self, machine: MachineId, memory_mb: int) -> None:
        try:
            while not self._fits(machine, memory_mb):
                await self._free_some(machine)
        finally:
            self._set_aside_mb = 0

    async def _free_some(self, newcomer: MachineId) -> None:
        self._freed.clear()
        idle = [(since, s) for s in self._sleepers() if s.id != newcomer and s.id in self._taken and (since := s.idle_since) is not None]
        for _, sleeper in sorted(idle, key=lambda pair: pair[0]):
            freed_mb = self._taken.get(sleeper.id, 0)
            if await sleeper.make_room():
                self._set_aside_mb += freed_mb
                return
        try:
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await self._freed.wait()
        except TimeoutError:
            pass
