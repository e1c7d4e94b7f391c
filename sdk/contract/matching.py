"""Does what came fit what was wanted? The patterns of the contract: see README.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

Json = Any


def problems(wanted: Json, got: Json, at: str = "") -> Iterator[str]:
    """Where it does not, one sentence for each place."""
    if isinstance(wanted, dict):
        pattern = cast(dict[str, Json], wanted)
        if len(pattern) == 1 and (word := next(iter(pattern))).startswith("$"):
            if not _fits(word, pattern[word], got):
                yield f"{at or 'it'} should be {wanted}, and is {got!r}"
        elif not isinstance(got, dict):
            yield f"{at or 'it'} should be an object, and is {got!r}"
        else:
            for name, value in pattern.items():
                yield from problems(value, cast(dict[str, Json], got).get(name), f"{at}.{name}".lstrip("."))
    elif isinstance(wanted, list):
        items = cast(list[Json], wanted)
        if not isinstance(got, list) or len(cast(list[Json], got)) != len(items):
            yield f"{at or 'it'} should be {items!r}, and is {got!r}"
        else:
            for i, (one, other) in enumerate(zip(items, cast(list[Json], got), strict=True)):
                yield from problems(one, other, f"{at}[{i}]")
    elif type(wanted) is bool or type(got) is bool:
        if wanted is not got:
            yield f"{at or 'it'} should be {wanted!r}, and is {got!r}"
    elif wanted != got:
        yield f"{at or 'it'} should be {wanted!r}, and is {got!r}"


def _fits(word: str, value: Json, got: Json) -> bool:
    if word == "$has":
        return isinstance(got, str) and value in got
    if word == "$not":
        return any(problems(value, got))
    if word == "$any":
        return got is not None
    if word == "$above":
        return isinstance(got, int | float) and got > value
    if word == "$some":
        return isinstance(got, list) and any(not any(problems(value, one)) for one in cast(list[Json], got))
    raise ValueError(f"there is no pattern {word}")
