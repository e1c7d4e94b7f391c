"""Is there memory for one more awake machine, and may its account have one more? If not, the one that has been idle longest is put to sleep first: of
the same account, where that one has its quota."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from everforge.store.quotas import UNLIMITED, Quota, exceeded
from everforge.wire.errors import NoCapacity
from everforge.wire.ids import AccountId, MachineId

from .locks import Locks

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


@dataclass(frozen=True, slots=True)
class _Place:
    memory_mb: int
    account: AccountId | None


class Admission:
    def __init__(self, budget_mb: int, sleepers: Callable[[], Iterable[Sleeper]]) -> None:
        self._budget_mb = budget_mb
        self._sleepers = sleepers
        self._taken: dict[MachineId, _Place] = {}
        self._freed = asyncio.Event()
        self._asking = asyncio.Lock()  # one at a time: two newcomers must not count on the same sleeper
        self._asking_of = Locks()  # and of each account: one that waits for its own machines keeps no other waiting
        self._set_aside_mb = 0  # freed for the one that asks, and not to be taken by others

    @property
    def taken_mb(self) -> int:
        return sum(place.memory_mb for place in self._taken.values())

    @property
    def budget_mb(self) -> int:
        return self._budget_mb

    def take_over(self, machine: MachineId, memory_mb: int, account: AccountId | None = None) -> None:
        """A machine that lives already counts, whether there is room or not."""
        self._taken[machine] = _Place(memory_mb, account)

    def release(self, machine: MachineId) -> None:
        if self._taken.pop(machine, None) is not None:
            self._freed.set()

    async def admit(
        self, machine: MachineId, memory_mb: int, patience_seconds: float, account: AccountId | None = None, quota: Quota = UNLIMITED
    ) -> None:
        """Raises NoCapacity; QuotaExceeded, which is one, where it is the account that has too many awake."""
        if memory_mb > self._budget_mb:
            raise NoCapacity(f"this server has {self._budget_mb} MB for machines; one of {memory_mb} MB can never wake here")
        before = self._taken.get(machine)
        place = _Place(memory_mb, account)
        if account is not None and (quota.awake or quota.memory_mb):
            await self._find_place_of_account(machine, place, quota, patience_seconds)
        try:
            await self._find_place(machine, place, patience_seconds)
        except BaseException:
            if before is None:
                self.release(machine)
            raise

    # --- of the account ------------------------------------------------------------------------------------------------------------------

    async def _find_place_of_account(self, machine: MachineId, place: _Place, quota: Quota, patience_seconds: float) -> None:
        if quota.memory_mb and place.memory_mb > quota.memory_mb:
            raise exceeded(
                "memory_mb", quota.memory_mb, f"this account may have {quota.memory_mb} MB awake, and this machine alone has {place.memory_mb}"
            )
        try:
            async with asyncio.timeout(patience_seconds), self._asking_of.of(str(place.account)):
                while not self._may(machine, place, quota):
                    await self._free_some(machine, place.account)
                self._taken[machine] = place  # no wait between the look and this
        except TimeoutError:
            limit = "awake" if quota.awake and self._of_account(machine, place)[0] >= quota.awake else "memory_mb"
            most = f"{quota.awake} machines" if limit == "awake" else f"{quota.memory_mb} MB of machines"
            message = f"this account may have {most} awake, and those that are, are busy: try again later"
            raise exceeded(limit, getattr(quota, limit), message) from None

    def _may(self, machine: MachineId, place: _Place, quota: Quota) -> bool:
        count, memory_mb = self._of_account(machine, place)
        fits = not quota.memory_mb or memory_mb + place.memory_mb <= quota.memory_mb
        return fits and (not quota.awake or count < quota.awake)

    def _of_account(self, machine: MachineId, place: _Place) -> tuple[int, int]:
        """How many others are awake, and the memory of those."""
        others = [other.memory_mb for id, other in self._taken.items() if other.account == place.account and id != machine]
        return len(others), sum(others)

    # --- of the host ---------------------------------------------------------------------------------------------------------------------

    async def _find_place(self, machine: MachineId, place: _Place, patience_seconds: float) -> None:
        memory_mb = place.memory_mb
        if self._fits(machine, memory_mb + self._set_aside_mb):  # a small one need not stand behind a large one that waits for room
            self._taken[machine] = place
            return
        try:
            async with asyncio.timeout(patience_seconds), self._asking:
                await self._make_room(machine, memory_mb)
                self._taken[machine] = place
        except TimeoutError:
            raise NoCapacity(
                f"no memory for {memory_mb} MB: {self.taken_mb} of {self._budget_mb} MB are taken by machines that are busy; try again later"
            ) from None

    def _fits(self, machine: MachineId, memory_mb: int) -> bool:
        before = self._taken.get(machine)
        return self.taken_mb - (before.memory_mb if before else 0) + memory_mb <= self._budget_mb

    async def _make_room(self, machine: MachineId, memory_mb: int) -> None:
        try:
            while not self._fits(machine, memory_mb):
                self._set_aside_mb += await self._free_some(machine)
        finally:
            self._set_aside_mb = 0

    async def _free_some(self, newcomer: MachineId, account: AccountId | None = None) -> int:
        """How many MB; 0 after a moment in which nothing became idle. Of one account, if it is named."""
        self._freed.clear()
        idle = [
            (since, s)
            for s in self._sleepers()
            if s.id != newcomer and (at := self._taken.get(s.id)) and account in (None, at.account) and (since := s.idle_since) is not None
        ]
        for _, sleeper in sorted(idle, key=lambda pair: pair[0]):
            place = self._taken.get(sleeper.id)
            if await sleeper.make_room():
                return place.memory_mb if place else 0
        try:
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await self._freed.wait()
        except TimeoutError:
            pass
        return 0
