"""The text of a configuration file: its bytes, how its lines end, and where in it something is wrong. No I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"  # some editors of Windows put it in front; who finds it there keeps it


class Broken(Exception):
    """It cannot be read, or not be changed with certainty. Lines and columns begin with 1, as editors count them."""

    def __init__(self, text: str, offset: int, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - (text.rfind("\n", 0, offset) + 1) + 1


@dataclass(frozen=True)
class Text:
    """What it says, and whether the mark of UTF-8 stood in front."""

    text: str
    marked: bool = False

    def encode(self) -> bytes:
        return (BOM if self.marked else b"") + self.text.encode("utf-8")

    def saying(self, text: str) -> Text:
        return Text(text, self.marked)


def decode(data: bytes) -> Text:
    marked = data.startswith(BOM)
    body = data[len(BOM) :] if marked else data
    try:
        return Text(body.decode("utf-8"), marked)
    except UnicodeDecodeError as e:
        before = body[: e.start].decode("utf-8")
        raise Broken(before, len(before), "a byte there is not UTF-8") from e


def line_end(text: str) -> str:
    """Of this file."""
    return "\r\n" if "\r\n" in text else "\n"


def line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def begins_line(text: str, offset: int) -> bool:
    """Is there nothing but space before it?"""
    return not text[line_start(text, offset) : offset].strip(" \t")


def cut(text: str, *spans: tuple[int, int]) -> str:
    """Without these, which do not overlap."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def changed_letters(old: str, new: str) -> int:
    """How many of the old text's are neither in front of the place where the new one differs, nor behind it. Told without reading either."""
    shorter = min(len(old), len(new))
    front = _longest(shorter, lambda length: old[:length] == new[:length])
    back = _longest(shorter - front, lambda length: old[len(old) - length :] == new[len(new) - length :])
    return len(old) - front - back


def _longest(most: int, is_same: Callable[[int], bool]) -> int:
    """The greatest length up to `most` for which it is so, when it is for all that are less."""
    return bisect_left(range(most), True, key=lambda length: not is_same(length + 1))
