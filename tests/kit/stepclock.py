"""Hears the steps of a server, with the time of each: what was done, what was not, and how long it took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from everforge.machines.steps import Steps


@dataclass
class StepClock:
    heard: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    @property
    def steps(self) -> Steps:
        return Steps(lambda step: self.heard.append((time.monotonic(), step)))

    def forget(self) -> None:
        self.heard.clear()

    def times(self, step: str) -> int:
        """How often it was begun."""
        return sum(heard == f"before {step}" for _, heard in self.heard)

    def seconds(self, *steps: str) -> float:
        """How long these took together; of one machine at a time."""
        total, begun = 0.0, dict[str, float]()
        for at, heard in self.heard:
            side, step = heard.split(" ", 1)
            if step in steps:
                if side == "before":
                    begun[step] = at
                else:
                    total += at - begun.pop(step)
        return total
