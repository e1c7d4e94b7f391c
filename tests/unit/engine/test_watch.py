"""The warden's watch over processors, with control groups whose numbers the test sets."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from everforge.engine.warden import watch


class Groups:
    """`rates`: how many processors each sandbox is using."""

    def __init__(self, *ids: str) -> None:
        self.rates = dict.fromkeys(ids, 0.0)
        self.gives_way: dict[str, bool] = {}
        self.looks = 0
        self._used = dict.fromkeys(ids, 0.0)
        self._at: dict[str, float] = {}

    def cpu_seconds(self, id: str) -> float | None:
        if id not in self.rates:
            return None
        self.looks += 1
        now = asyncio.get_running_loop().time()
        self._used[id] += self.rates[id] * (now - self._at.get(id, now))
        self._at[id] = now
        return self._used[id]

    def weigh(self, id: str, *, gives_way: bool) -> None:
        self.gives_way[id] = gives_way

    async def looked_at(self) -> None:
        """Each of them twice from now on: the first look may have begun before."""
        wanted = self.looks + 3 * len(self.rates)
        async with asyncio.timeout(10):
            while self.looks < wanted:
                await asyncio.sleep(0.001)


async def test_who_computes_gives_way_until_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PROCESSORS_SECONDS", 0.005)
    groups: Any = Groups("loud", "calm")
    sandboxes: Any = SimpleNamespace(all=lambda: [SimpleNamespace(id=id) for id in ("loud", "calm", "gone")])
    watching = asyncio.ensure_future(watch.watch_processors(sandboxes, groups))
    try:
        # Between the two bounds it stays as it was. Each is said once at least: an earlier warden may have said something else.
        for processors, gives_way in ((0.0, False), (0.4, False), (2.0, True), (0.4, True), (0.1, False)):
            groups.rates["loud"] = processors
            await groups.looked_at()
            assert groups.gives_way == {"loud": gives_way, "calm": False}, processors
    finally:
        watching.cancel()
        await asyncio.wait([watching])


def test_who_was_asked_for_something_and_computed_rests_once() -> None:
    habit = watch.Habit()
    for _ in range(3):
        assert [habit.look(part) for part in (2.0, 0.3, 0.1)] == [True, True, False]
        assert not any(habit.look(0.0) for _ in range(watch.AGAIN_LOOKS))


def test_who_computes_in_waves_gives_way_between_them_too_and_longer_each_time() -> None:
    habit = watch.Habit()
    waited: list[int] = []
    for _ in range(12):
        assert habit.look(1.0)
        waited.append(next(n for n in range(1, 1000) if not habit.look(0.1)))
    assert waited[:4] == [1, 2, 4, 8]
    assert max(waited) == waited[-1] == watch.RESTING_LOOKS_MAX
    assert not any(habit.look(0.0) for _ in range(watch.AGAIN_LOOKS))
    assert (habit.look(1.0), habit.look(0.1)) == (True, False), "it has rested for a while, and begins anew"
