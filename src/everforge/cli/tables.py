"""Rows for people and for scripts: aligned columns under a heading on a terminal, tab-separated plain lines elsewhere. And JSON for programs.

Written by hand, since listing is what people do most often, and a library for tables takes longer to load than the server to answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, cast

FIELD_WIDTH = 22  # of the name of a field, at least


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
    found = list(fields)
    width = max((FIELD_WIDTH, *(len(name) + 2 for name, _ in found)))
    for name, value in found:
        print(f"{name}\t{plain(value)}" if not on_terminal(sys.stdout) else f"{name:{width}}{plain(value)}")


def print_json(value: object) -> None:
    from dataclasses import asdict, is_dataclass
    from json import dumps

    def fields(found: Any) -> object:
        return asdict(found) if is_dataclass(found) and not isinstance(found, type) else str(found)

    print(dumps(value, indent=1, default=fields))


def plain(value: object) -> str:
    """One line without anything that a terminal would obey, or that would show it in another order than it is written in."""
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        value = " ".join(f"{_word(name, of_name=True)}={_word(one)}" for name, one in pairs)
    text = "-" if value is None or value == "" else str(value)
    return printable(text)


def printable(text: str) -> str:
    return text if text.isprintable() else "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _word(value: object, *, of_name: bool = False) -> str:
    """In quotes where it would else be taken for more than one: nobody's value makes a field of its own."""
    if isinstance(value, str) and value and not any(letter in value for letter in (' "=' if of_name else ' "')):
        return value
    if not isinstance(value, str | list | dict):
        return str(value)
    from json import dumps

    return dumps(value, ensure_ascii=False, default=str)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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
