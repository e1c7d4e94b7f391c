"""What every store must do alike with a tape: give positions, cut an entry, and refuse what cannot be on one. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from everforge.wire.errors import InvalidInput
from everforge.wire.events import Accepted, Ended, Event, Output, Position

from .base import AT_END, MachineQuery, MachineRecord, PointRecord

# A power cut can take what was told but not yet synced; afterwards every counter jumps ahead of anything that could have been told, so that
# a number is never given twice for two things. The jump must therefore be larger than all that can be unsynced at once, which the
# writer bounds by these limits: it syncs before it would go over.
CHANGE_POSITIONS_MAX = 10_000_000  # one message of 16 MiB (wire.frames.MESSAGE_BYTES_MAX) holds at most 5.6 million lines, `"",` each
CHANGE_INSTRUCTIONS_MAX = 1_000  # a client that asks for more at once can ask twice
UNSYNCED_POSITIONS_MAX = 50_000_000
UNSYNCED_INSTRUCTIONS_MAX = 5_000
POSITION_JUMP = 100_000_000  # 2**53 (what JavaScript can count to) is reached after 90 million power cuts
INSTRUCTION_JUMP = 10_000  # people read these numbers: as small as is safe

# A group of changes is closed when it goes over one of the CHANGE limits, so it holds less than twice of each.
assert 2 * CHANGE_POSITIONS_MAX <= UNSYNCED_POSITIONS_MAX < POSITION_JUMP
assert 2 * CHANGE_INSTRUCTIONS_MAX <= UNSYNCED_INSTRUCTIONS_MAX < INSTRUCTION_JUMP

READ_BYTES_MAX = 512 * 1024  # one read of a tape stops behind the entry that goes over it, however many were asked for
DISPLAYED_BYTES_MAX = 4 * 1024 * 1024  # likewise, of what one instruction displayed
INSTRUCTIONS_BYTES_MAX = 1024 * 1024  # likewise, of a page of instructions with their ends
LINE_BYTES = 56  # what a line of output takes in memory beside its text

FIELDS = tuple(f.name for f in fields(MachineRecord))
SETTABLE = frozenset(FIELDS) - {"id", "account", "created_at", "source", "source_position"}  # the others are what a machine is, for good


RUNTIME_MS_MAX = 2**40  # 35 years: what a guest says of itself must not make a sum that nobody can store


def counted_ms(event: Ended) -> int:
    """What an instruction adds to the usage of its account."""
    return min(max(event.runtime_ms, 0), RUNTIME_MS_MAX)


def awake_ms(since: float | None, now: float) -> int:
    """Of a machine that is awake since then; clocks may be set back."""
    return 0 if since is None else max(0, int((now - since) * 1000))


def place(events: Sequence[Event], first: int) -> tuple[list[Event], int]:
    """The events with their positions from `first` on, and the position after them."""
    placed: list[Event] = []
    for event in events:
        width = event.width
        if width < 1:
            raise InvalidInput("an output without lines has no place on a tape")
        placed.append(event.at(Position(first)))
        first += width
    return placed, first


def weigh(events: Iterable[Event]) -> tuple[int, int]:
    """How many positions and how many instructions; InvalidInput where that is more than one change may hold."""
    positions = instructions = 0
    for event in events:
        positions += event.width
        instructions += isinstance(event, Accepted)
    if positions > CHANGE_POSITIONS_MAX or instructions > CHANGE_INSTRUCTIONS_MAX:
        raise InvalidInput(
            f"{positions} positions and {instructions} instructions are more than one change may hold"
            f" ({CHANGE_POSITIONS_MAX} and {CHANGE_INSTRUCTIONS_MAX})"
        )
    return positions, instructions


def read_bytes(event: Event, stored_bytes: int) -> int:
    """What an entry takes in the memory of who reads it."""
    return stored_bytes + (LINE_BYTES * len(event.lines) if isinstance(event, Output) else 0)


def cut(event: Event, after: int, upto: int | None = None) -> Event | None:
    """What of an entry lies after one position and not after another; None if nothing does."""
    if event.position + event.width - 1 <= after or (upto is not None and event.position > upto):
        return None
    if not isinstance(event, Output):
        return event
    event = event.after(Position(after))
    if upto is not None and event.position + event.width - 1 > upto:
        event = replace(event, lines=event.lines[: upto - event.position + 1], partial=False)
    return event


def calls(entries: Iterable[tuple[int, str, int]]) -> dict[int, Position | None]:
    """From the number, kind and position of each `Called` and `Answered`, the calls with the position of their answer."""
    found: dict[int, Position | None] = {}
    for call, kind, position in entries:
        if kind == "answered":
            found[call] = Position(position)
        else:
            found.setdefault(call, None)
    return found


def check_settable(names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in SETTABLE]
    if unknown:
        raise InvalidInput(f"{', '.join(sorted(unknown))} of a machine cannot be set")


def check_limit(limit: int) -> None:
    if limit < 1:
        raise InvalidInput(f"a limit of {limit}: ask for at least one")


def matches(record: MachineRecord, query: MachineQuery) -> bool:
    """The meaning of a query, for stores that look at records one by one."""
    return (
        (record.residence in query.residences if query.residences else record.deleted_at is None)
        and (query.account is None or record.account == query.account)
        and record.name.startswith(query.name_prefix)
        and all(record.tags.get(key) == value for key, value in query.tags.items())
        and (query.before is None or (record.created_at, record.id) < query.before)
    )


def placed_points(points: Sequence[PointRecord], end: int) -> list[PointRecord]:
    """Points that were added AT_END get the position that the tape ends with."""
    return [replace(point, position=Position(end)) if point.position == AT_END else point for point in points]
