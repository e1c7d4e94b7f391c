"""What the specification promises, as data: the table in SPECIFICATION.md names these keys, and a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Goal:
    key: str  # its number, and which half of it where there are two
    number: int | None  # None: one without a number
    name: str
    goal: float
    better: Literal["less", "more"] = "less"
    extra: bool = False  # measured, but not promised by what is built so far
    unit: Literal["ratio", "s"] = "ratio"

    def holds(self, value: float) -> bool:
        return value <= self.goal if self.better == "less" else value >= self.goal

    @property
    def bound(self) -> str:
        return f"{'≤' if self.better == 'less' else '≥'} {self.goal:g}{'' if self.unit == 'ratio' else ' ' + self.unit}"


GOALS = (
    Goal("trivial", None, "trivial instruction, p50 / the same guest by hand", 1.5),
    Goal("1-jupyter", 1, "trivial instruction over the WebSocket, p50 / a Jupyter kernel", 0.15),
    Goal("1-relay", 1, "the same / a bare relay to the same guest", 2.0),
    Goal("2", 2, "trivial instruction over HTTP, p50 / a Jupyter kernel", 0.3),
    Goal("4", 4, "new machine to first result, nothing made ahead / raw restore", 1.1),
    Goal("5-restore", 5, "wake to first result / raw restore", 0.8),
    Goal("5-plain", 5, "wake to first result / python3 importing the same", 0.2),
    Goal("7", 7, "hibernate until durable / raw checkpoint and fsync", 1.5),
    Goal("8-stopped", 8, "fork, live source stopped / raw checkpoint", 1.3),
    Goal("8-answers", 8, "first result of a fork / wake to first result", 1.5),
    Goal("9", 9, "a million printed lines to a client / a Jupyter kernel", 0.5),
    Goal("9-memory", 9, "the server's memory meanwhile / before", 1.2),
    Goal("10", 10, "20 machines at once, instructions per second / kernels behind a Jupyter server", 4.0, better="more"),
    Goal("11", 11, "host memory awake / a Jupyter kernel", 0.9),
    Goal("13-list", 13, "a page of 100,000 machines / of 10", 1.2),
    Goal("13-tags", 13, "a page of 100,000 machines by tag / of 10", 1.2),
    Goal("13-exec", 13, "a trivial instruction among 100,000 machines / among 10", 1.2),
    Goal("15-help", 15, "everforge --help / python3 -c pass", 4.0),
    Goal("15-list", 15, "everforge machine list / python3 -c pass", 4.0),
    Goal("16", 16, "make run from a warm cache, until the first result of a new machine", 5.0, unit="s"),
    Goal("bomb-loop", None, "a neighbour's p99 beside endless loops / beside a quiet machine", 2.0),
    Goal("bomb-forks", None, "the same beside a fork bomb", 2.0),
    Goal("bomb-memory", None, "the same beside a memory bomb", 2.0),
    Goal("bomb-disk", None, "the same beside a disk that is filled again and again", 2.0),
    Goal("bomb-output", None, "the same beside output without end", 2.0),
    Goal("bomb-pieces", None, "the same beside output in the smallest pieces", 2.0),
    Goal("bomb-results", None, "the same beside results of 110,000 values, one after the other", 2.0),
    Goal("3", 3, "new machine to first result, one made ahead / python3", 0.03, extra=True),
    Goal("14", 14, "CPU-bound Python, speed in a machine / on the host", 0.97, better="more", extra=True),
)

BY_KEY = {goal.key: goal for goal in GOALS}
