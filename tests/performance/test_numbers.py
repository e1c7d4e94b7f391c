"""The specification, the benchmark and its results speak of the same numbers. Nothing is timed here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from bench import report
from bench.goals import BY_KEY, GOALS
from bench.measure import in_turns, result
from bench.numbers import NUMBERS

SPECIFICATION = Path(__file__).parents[2] / "SPECIFICATION.md"
SHAPE = {"key": str, "number": int | None, "name": str, "value": float, "goal": float, "unit": str, "holds": bool, "samples": int, "extra": bool}


def promised() -> dict[str, str]:
    """Key to bound, from the tables."""
    return dict(re.findall(r"^\| `([^`]+)` \|.*\| ([≤≥] [\d.]+(?: s)?)(?= )[^|]*\|$", SPECIFICATION.read_text(), re.MULTILINE))


def check_shape(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        assert {name: isinstance(entry[name], kind) for name, kind in SHAPE.items()} == dict.fromkeys(SHAPE, True)
        goal = BY_KEY[entry["key"]]
        assert (entry["number"], entry["goal"], entry["unit"]) == (goal.number, goal.goal, goal.unit)
        assert entry["holds"] == goal.holds(entry["value"])
        assert entry["samples"] > 0
    assert len({entry["key"] for entry in entries}) == len(entries)


def test_the_specification_promises_exactly_what_the_benchmark_knows() -> None:
    assert promised() == {goal.key: goal.bound for goal in GOALS}


def test_every_goal_is_measured_once() -> None:
    assert sorted(key for number in NUMBERS for key in number.goals) == sorted(BY_KEY)


def test_the_results_that_were_written_last_have_their_shape() -> None:
    check_shape(report.read())


def test_a_new_result_replaces_its_own_number_only(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    report.write([result("7", [30.0, 31.0], [20.0, 22.0], ("ours", "raw")), result("4", [1.0], [1.0], ("ours", "raw"))], file)
    report.write([result("7", [90.0, 91.0], [20.0, 22.0], ("ours", "raw"))], file)
    entries = report.read(file)
    check_shape(entries)
    assert [(entry["key"], entry["holds"]) for entry in entries] == [("4", True), ("7", False)]


def test_a_ratio_of_speeds_is_turned_around() -> None:
    assert result("14", [100.0], [98.0], ("machine", "host")).value == pytest.approx(0.98)
    assert result("14", [100.0], [98.0], ("machine", "host")).holds


async def test_sides_are_sampled_in_turns_in_both_orders_and_the_first_round_is_dropped() -> None:
    called: list[str] = []

    async def side(name: str, seconds: float) -> float:
        called.append(name)
        return seconds

    taken = await in_turns(2, lambda: side("a", 0.001), lambda: side("b", 0.002))
    assert taken == [[1.0, 1.0], [2.0, 2.0]]
    assert "".join(called) == "baabba"
