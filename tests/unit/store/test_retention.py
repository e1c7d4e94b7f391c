from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everforge.store.base import PointRecord
from everforge.store.retention import Retention, to_drop
from everforge.wire.events import Position
from everforge.wire.ids import MachineId, SnapshotId


def point(number: int, **values: Any) -> PointRecord:
    defaults: dict[str, Any] = {"created_at": float(number), "reason": "idle", "size_bytes": 10}
    return PointRecord(snapshot=SnapshotId(f"p{number}"), machine=MachineId("m"), position=Position(number), instruction=None, **(defaults | values))


def dropped(points: list[PointRecord], keep: Retention, head: int | None = None, now: float = 100.0) -> list[int]:
    return [int(p.snapshot[1:]) for p in to_drop(points, keep, head=None if head is None else SnapshotId(f"p{head}"), now=now)]


FIVE = [point(i) for i in range(5)]


def test_without_limits_everything_is_kept() -> None:
    assert dropped(FIVE, Retention()) == []


def test_the_newest_are_kept_by_count() -> None:
    assert dropped(FIVE, Retention(count=2)) == [0, 1, 2]
    assert dropped(FIVE[::-1], Retention(count=2)) == [0, 1, 2]
    assert dropped(FIVE, Retention(count=0)) == [0, 1, 2, 3, 4]


def test_old_ones_go_by_age() -> None:
    assert dropped(FIVE, Retention(age_seconds=98)) == [0, 1]


def test_a_point_that_was_saved_while_the_clock_was_wrong_is_no_older_than_the_one_before_it() -> None:
    points = [point(0, created_at=90.0), point(1, created_at=-1e6), point(2, created_at=91.0)]
    assert dropped(points, Retention(age_seconds=50)) == []
    assert dropped(points, Retention(age_seconds=9.5)) == [0, 1]


def test_the_newest_are_kept_by_bytes_and_no_older_smaller_one_slips_past() -> None:
    assert dropped([point(0, size_bytes=1), point(1, size_bytes=20), point(2)], Retention(bytes=25)) == [0, 1]


def test_named_ones_the_head_and_the_template_are_never_dropped() -> None:
    points = [point(0, reason="template"), point(1, name="kept"), point(2), point(3)]
    assert dropped(points, Retention(count=0, age_seconds=0, bytes=0), head=3) == [2]


def test_what_is_kept_anyway_takes_its_share_of_the_bytes() -> None:
    points = [point(0, name="kept", size_bytes=95), point(1), point(2)]
    assert dropped(points, Retention(bytes=100)) == [1, 2]


POINTS = st.lists(
    st.builds(
        point,
        st.integers(0, 1000),
        created_at=st.floats(0, 1000),
        reason=st.sampled_from(["template", "idle", "each", "fork"]),
        name=st.sampled_from([None, None, "n"]),
        size_bytes=st.integers(0, 100),
    ),
    unique_by=lambda p: p.snapshot,
    max_size=12,
)


def in_order(points: list[PointRecord]) -> list[PointRecord]:
    """As they were saved one after the other, by a clock that nobody set."""
    times = sorted(p.created_at for p in points)
    return [replace(p, created_at=at) for p, at in zip(sorted(points, key=lambda p: p.position), times, strict=True)]


LIMITS = st.builds(Retention, st.none() | st.integers(0, 12), st.none() | st.floats(0, 1000), st.none() | st.integers(0, 500))


@given(POINTS.map(in_order), LIMITS, st.integers(0, 1000))
def test_what_is_left_is_within_the_limits_and_dropping_twice_drops_nothing_more(points: list[PointRecord], keep: Retention, head: int) -> None:
    gone = to_drop(points, keep, head=SnapshotId(f"p{head}"), now=1000.0)
    left = [p for p in points if p not in gone]
    ours = [p for p in left if p.name is None and p.reason != "template" and p.snapshot != f"p{head}"]
    assert all(p.name is None and p.reason != "template" and p.snapshot != f"p{head}" for p in gone)
    assert keep.count is None or len(ours) <= keep.count
    assert keep.age_seconds is None or all(1000.0 - p.created_at <= keep.age_seconds for p in ours)
    assert keep.bytes is None or not ours or sum(p.size_bytes for p in left if p.reason != "template") <= keep.bytes
    assert not ours or all((p.position, p.created_at) <= min((o.position, o.created_at) for o in ours) for p in gone)
    assert to_drop(left, keep, head=SnapshotId(f"p{head}"), now=1000.0) == []
