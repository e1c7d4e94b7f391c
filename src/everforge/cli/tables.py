"""Rows for people and for scripts: aligned columns under a heading on a terminal, tab-separated plain lines elsewhere. And JSON for programs.

Written by hand, since listing is what people do most often, and a library for tables takes longer to load than the server to answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def print_rows(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    if not on_terminal(sys.stdout):
        for row in rows:
            print("\t".join(plain(cell) for cell in row))
        return
    whole = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(heading), *whole]) for i in range(len(heading))]
    print(bold(_aligned(heading, widths)))
    for row in whole:
        print(_aligned(row, widths))


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    for name, value in fields:
        print(f"{name}\t{plain(value)}" if not on_terminal(sys.stdout) else f"{name:22}{plain(value)}")


def print_json(value: object) -> None:
    from dataclasses import asdict, is_dataclass
    from json import dumps

    def fields(found: Any) -> object:
        return asdict(found) if is_dataclass(found) and not isinstance(found, type) else str(found)

    print(dumps(value, indent=1, default=fields))


def plain(value: object) -> str:
    """One line without anything that a terminal would obey."""
    if isinstance(value, dict):
        value = " ".join(f"{name}={one}" for name, one in value.items())  # pyright: ignore[reportUnknownVariableType]
    return "-" if value is None or value == "" else str(value).translate(_CONTROL)  # pyright: ignore[reportUnknownArgumentType]


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colours() else text


def colours() -> bool:
    return on_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def on_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def size(count: int) -> str:
    """Of bytes, as people read it."""
    if count < 1000:
        return f"{count} B"
    power = next((power for power in (1, 2, 3) if count < 1000 ** (power + 1)), 4)
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def moment(text: str | None) -> str:
    """An RFC 3339 time, to the second."""
    return "-" if text is None else f"{text[:19]}Z" if len(text) > 19 else text


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
