"""One module for each thing that is measured. Each has `measure`, which gives the results of its goals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.house import House
from bench.measure import Result

from . import bombs, command, cpu, create, crowd, door, flood, footprint, fork, hibernate, multitude, start, trivial, wake


@dataclass(frozen=True, slots=True)
class Number:
    name: str
    goals: tuple[str, ...]
    measure: Callable[[House, int], Awaitable[list[Result]]]
    samples: int
    quick: int  # samples when it shall be quick


NUMBERS = (
    Number("a trivial instruction", ("trivial",), trivial.measure, 600, 60),
    Number("a trivial instruction through the server", ("1-jupyter", "1-relay", "2"), door.measure, 400, 40),
    Number("a new machine, nothing made ahead", ("4",), create.measure_cold, 12, 3),
    Number("a wake", ("5-restore", "5-plain"), wake.measure, 12, 3),
    Number("going to sleep", ("7",), hibernate.measure, 12, 3),
    Number("a fork", ("8-stopped", "8-answers"), fork.measure, 12, 3),
    Number("a million printed lines", ("9", "9-memory"), flood.measure, 5, 1),
    Number("twenty machines at once", ("10",), crowd.measure, 5, 1),
    Number("memory of an awake machine", ("11",), footprint.measure, 3, 1),
    Number("a hundred thousand machines", ("13-list", "13-tags", "13-exec"), multitude.measure, 200, 10),
    Number("the command line", ("15-help", "15-list"), command.measure, 15, 3),
    Number("make run", ("16",), start.measure, 3, 1),
    Number("bombs beside a neighbour", tuple(bombs.BOMBS), bombs.measure, 5, 1),
    Number("a new machine, one made ahead", ("3",), create.measure_warm, 8, 2),
    Number("CPU-bound Python", ("14",), cpu.measure, 5, 1),
)
