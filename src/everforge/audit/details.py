"""What an entry says beside its fields: names and numbers, in so many bytes and no more, whatever was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everforge.wire.audit import canonical

DETAIL_BYTES_MAX = 2048  # of its JSON: a log of 256 MB has room for 100,000 of the longest
TEXT_MAX = 200  # characters of whatever came from outside
STEPS = ((TEXT_MAX, 100), (100, 20), (40, 8), (20, 3))  # characters of a text and members of a list: as much as fits
SHORTENED = "shortened"  # how many texts and lists in it are not whole


def fitting(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The same, or shorter; it then says so itself."""
    for text_max, members_max in STEPS:
        knife = _Knife(text_max, members_max)
        found = {name: knife.cut(value) for name, value in notes.items()}
        if knife.cuts:
            found[SHORTENED] = knife.cuts
        if _size_bytes(found) <= DETAIL_BYTES_MAX:
            return found
    return {SHORTENED: len(notes)}


def short(text: str) -> str:
    return _Knife(TEXT_MAX, 0).cut(text)


def _size_bytes(detail: Mapping[str, Any]) -> int:
    try:
        return len(canonical(detail))
    except (ValueError, TypeError):
        return 0  # it cannot be written down at all, which is for the recorder to say


class _Knife:
    def __init__(self, text_max: int, members_max: int) -> None:
        self._text_max = text_max
        self._members_max = members_max
        self.cuts = 0

    def cut(self, value: Any) -> Any:
        if isinstance(value, str):
            self._count(len(value) > self._text_max)
            return value[: self._text_max].encode("utf-8", "replace").decode()
        if isinstance(value, list):
            self._count(len(value) > self._members_max)  # pyright: ignore[reportUnknownArgumentType]
            return [self.cut(one) for one in value[: self._members_max]]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            self._count(len(value) > self._members_max)  # pyright: ignore[reportUnknownArgumentType]
            return {self.cut(name): self.cut(one) for name, one in list(value.items())[: self._members_max]}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return value if isinstance(value, int | float | bool) or value is None else self.cut(str(value))

    def _count(self, is_cut: bool) -> None:
        self.cuts += is_cut
