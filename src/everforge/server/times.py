"""Times on the wire: RFC 3339, in UTC, with microseconds."""

from __future__ import annotations

from datetime import UTC, datetime

from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import show


def to_wire(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def to_wire_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else to_wire(seconds)


def from_wire(field: str, text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError("no time zone")
        return found.timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{field} must be a time such as 2030-01-31T12:00:00Z, not {show(text)}") from None
