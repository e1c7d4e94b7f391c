"""Two sides in turns, and what is said of them."""

from __future__ import annotations

import os
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .goals import BY_KEY, Goal

Side = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Result:
    """Medians of both sides and their ratio. `unit` is that of the samples; the ratio has none. Without a second side, the median of the first."""

    goal: Goal
    ours: Sequence[float]
    theirs: Sequence[float]
    sides: tuple[str, str]  # what each side is, for people
    unit: str = "ms"
    value: float = 0.0
    notes: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def holds(self) -> bool:
        return self.goal.holds(self.value)

    @property
    def samples(self) -> int:
        return min(len(self.ours), len(self.theirs)) if self.theirs else len(self.ours)

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.goal.key,
            "number": self.goal.number,
            "name": self.goal.name,
            "value": round(self.value, 4),
            "goal": self.goal.goal,
            "better": self.goal.better,
            "unit": self.goal.unit,
            "holds": self.holds,
            "samples": self.samples,
            "extra": self.goal.extra,
            "load": round(os.getloadavg()[0], 1),  # of the computer: above its number of processors, others were measured, too
            "ours": summary(self.ours, self.sides[0], self.unit),
            "theirs": summary(self.theirs, self.sides[1], self.unit) if self.theirs else None,
            "notes": {name: round(value, 4) for name, value in self.notes.items()},
        }


def result(
    key: str, ours: Sequence[float], theirs: Sequence[float], sides: tuple[str, str], *, unit: str = "ms", notes: dict[str, float] | None = None
) -> Result:
    goal = BY_KEY[key]
    ratio = statistics.median(ours) / statistics.median(theirs)
    # Of speeds, not of times, where more is better.
    return Result(goal, ours, theirs, sides, unit, ratio if goal.better == "less" else 1 / ratio, notes or {})


def single(key: str, ours: Sequence[float], side: str, *, unit: str) -> Result:
    """One that is not compared with anything."""
    return Result(BY_KEY[key], ours, (), (side, ""), unit, statistics.median(ours))


def summary(samples: Sequence[float], what: str, unit: str) -> dict[str, Any]:
    low, middle, high = quartiles(samples)
    return {"what": what, "unit": unit, "median": round(middle, 4), "quartiles": [round(low, 4), round(high, 4)], "best": round(min(samples), 4)}


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    if len(samples) < 2:
        return samples[0], samples[0], samples[0]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high


def percentile(samples: Sequence[float], percent: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


async def in_turns(count: int, *sides: Side) -> list[list[float]]:
    """One sample of each side, `count` times, in an order that changes: whatever disturbs this computer disturbs both. The first round does not
    count."""
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(count + 1):
        order = range(len(sides)) if number % 2 else reversed(range(len(sides)))
        for index in order:
            seconds = await sides[index]()
            if number:
                taken[index].append(seconds * 1000)
    return taken
