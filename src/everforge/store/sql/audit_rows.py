"""Rows of the audit log as they are found. A cell may hold anything, since SQLite has no types and somebody may have been at it: that shows when the
chain is checked, and must not keep the log from being read, nor from being written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any, NoReturn

from everforge.wire.audit import AuditEntry, AuditHead, from_ms

NUMBER_MAX = 2**62  # far beyond what is ever written, and the next after it can be written too
TEXT_MAX = 1024 * 1024  # characters of a cell: more than were ever written
DEPTH_MAX = 32  # of what is in a detail: more than was ever written, and no reader stumbles over it
UNREADABLE = "unreadable"  # in the place of a detail: the columns which hold what no entry has
_TEXTS = ("action", "outcome", "account", "account_name", "token", "machine", "address", "request", "previous", "hash")
_NEEDED = frozenset({"action", "outcome", "previous", "hash"})


@contextmanager
def any_text(connection: sqlite3.Connection) -> Generator[None]:
    """Texts are read though they are not UTF-8; by what stands in for their bytes they are known."""
    before, connection.text_factory = connection.text_factory, _any_text
    try:
        yield
    finally:
        connection.text_factory = before


def _any_text(found: bytes) -> str:
    return str(found, "utf-8", "surrogateescape")


def to_head(row: Sequence[Any] | None) -> AuditHead | None:
    """None where there is none, or what is there is none."""
    if row is None or not _is_number(row[0]) or not _is_text(row[1]):
        return None
    return AuditHead(number=row[0], hash=row[1])


def _is_number(cell: object) -> bool:
    return type(cell) is int and 0 <= cell < NUMBER_MAX


def to_entry(row: Sequence[Any]) -> AuditEntry:
    """What cannot be read is left out and named in `detail`: then its hash is not that of what it says."""
    number, time_ms, *texts, detail, previous, hash = row
    cells = dict(zip(_TEXTS, (*texts, previous, hash), strict=True))
    found: dict[str, Any] = {name: cell if _is_text(cell) else "" if name in _NEEDED else None for name, cell in cells.items()}
    bad = [name for name, cell in cells.items() if cell != found[name]]
    time, content = _time(time_ms), _content(detail)
    bad += [name for name, read in (("time", time), ("detail", content)) if read is None]
    return AuditEntry(number=number, time=time or "", detail=content if content is not None and not bad else {UNREADABLE: bad}, **found)


def _is_text(cell: object) -> bool:
    if not isinstance(cell, str) or len(cell) > TEXT_MAX:
        return False
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time(cell: object) -> str | None:
    try:
        return from_ms(cell) if type(cell) is int else None
    except (ValueError, OverflowError, OSError):
        return None  # a year that no calendar has


def _content(cell: object) -> dict[str, Any] | None:
    if not isinstance(cell, str) or len(cell) > TEXT_MAX:
        return None
    try:
        found = json.loads(cell, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _is_flat(found, DEPTH_MAX) else None  # pyright: ignore[reportUnknownVariableType]


def _is_flat(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    return depth > 0 and all(_is_flat(one, depth - 1) for one in (value.values() if isinstance(value, dict) else value))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
