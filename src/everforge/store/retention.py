"""Which points to let go. Pure: given what there is, says what to drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everforge.wire.ids import SnapshotId

from .base import PointRecord


@dataclass(frozen=True, slots=True)
class Retention:
    """How many points of a machine to keep, how old, and how many bytes of them in all; None: no such limit."""

    count: int | None = None
    age_seconds: float | None = None
    bytes: int | None = None


def to_drop(points: Sequence[PointRecord], keep: Retention, *, head: SnapshotId | None, now: float) -> list[PointRecord]:
    """Those over a limit, oldest first. Never a named one, never the head, never the template: the way back to the beginning stays open.

    The newest are kept first. What is never dropped takes its share of the bytes but not of the count. No point counts as older than what stands
    before it on the tape, whatever time it was given: clocks are set.
    """
    mine = [point for point in points if not _protected(point, head)]
    mine.sort(key=lambda point: (point.position, point.created_at), reverse=True)
    bytes_kept = sum(point.size_bytes for point in points if _protected(point, head) and point.reason != "template")
    born = _born(points)
    dropped: list[PointRecord] = []
    for kept, point in enumerate(mine):
        over_count = keep.count is not None and kept >= keep.count
        over_age = keep.age_seconds is not None and now - born[point.snapshot] > keep.age_seconds
        over_bytes = keep.bytes is not None and bytes_kept + point.size_bytes > keep.bytes
        # Once one is over, all older ones are too: no holes, so that what is kept is always the recent past.
        if dropped or over_count or over_age or over_bytes:
            dropped.append(point)
        else:
            bytes_kept += point.size_bytes
    return dropped[::-1]


def _born(points: Sequence[PointRecord]) -> dict[SnapshotId, float]:
    latest, born = float("-inf"), dict[SnapshotId, float]()
    for point in sorted(points, key=lambda point: point.position):
        born[point.snapshot] = latest = max(latest, point.created_at)
    return born


def _protected(point: PointRecord, head: SnapshotId | None) -> bool:
    return point.name is not None or point.snapshot == head or point.reason == "template"
