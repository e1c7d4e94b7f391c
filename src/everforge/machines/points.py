"""Points: places on a tape that a machine can go back to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everforge.store.base import PointRecord
from everforge.wire.errors import InvalidInput, NameTaken, PointNotKept, Refused, SnapshotNotFound
from everforge.wire.ids import SnapshotId

NEAREST = 5  # how many kept points an error names


@dataclass(frozen=True, slots=True)
class Target:
    """Where to go back to: a snapshot by id or name, the state after an instruction, or (with neither) the newest point."""

    snapshot: str | None = None
    instruction: int | None = None

    def __post_init__(self) -> None:
        if self.snapshot is not None and self.instruction is not None:
            raise InvalidInput("say either a snapshot or an instruction to go back to, not both")


def describe(point: PointRecord) -> str:
    after = "before any instruction" if point.instruction is None else f"after instruction {point.instruction}"
    return f"{point.snapshot} ({point.name + ', ' if point.name else ''}{after})"


def offer(points: Sequence[PointRecord], besides: SnapshotId | None = None) -> str:
    """The newest kept points and every named one, for a message; `besides` is one that is known to be of no use."""
    useful = [p for p in reversed(points) if p.snapshot != besides]
    return ", ".join(describe(p) for i, p in enumerate(useful) if i < NEAREST or p.name) or "none"


def point_of(points: Sequence[PointRecord], snapshot: SnapshotId | None) -> PointRecord:
    """The point of this snapshot."""
    for point in reversed(points):
        if point.snapshot == snapshot:
            return point
    raise SnapshotNotFound(f"this machine has no point of snapshot {snapshot}; it has {offer(points)}")


def check_new_name(points: Sequence[PointRecord], name: str, named_max: int) -> None:
    taken = [p for p in points if p.name is not None]
    for point in taken:
        if point.name == name:
            raise NameTaken(f"this machine has a snapshot named {name!r} already ({point.snapshot}); forget that one first, or take another name")
    if len(taken) >= named_max:
        raise Refused(f"this machine has {named_max} named snapshots, which is the limit; forget one that is no longer wanted")


def find(points: Sequence[PointRecord], target: Target) -> PointRecord:
    if target.snapshot is not None:
        for field in ("snapshot", "name"):
            for point in reversed(points):
                if getattr(point, field) == target.snapshot:
                    return point
        raise SnapshotNotFound(f"this machine has no snapshot {target.snapshot!r}; it has {offer(points)}")
    if target.instruction is not None:
        for point in reversed(points):
            if point.instruction == target.instruction:
                return point
        raise _not_kept(points, target.instruction)
    if not points:
        raise PointNotKept("this machine has no points to go back to", nearest=[])
    return points[-1]


def _not_kept(points: Sequence[PointRecord], instruction: int) -> PointNotKept:
    nearest = sorted(points, key=lambda p: abs((-1 if p.instruction is None else p.instruction) - instruction))[:NEAREST]
    named = ", ".join(describe(p) for p in nearest) or "none"
    return PointNotKept(f"no point was kept after instruction {instruction}; the nearest are {named}", nearest=[p.snapshot for p in nearest])
