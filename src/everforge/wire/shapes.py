"""Is a value of the type, and in the range, that its field declares? Compiled once for each field, since every message asks it. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

Check = Callable[[Any], bool]

INTEGER_MAX = 2**63 - 1  # numbers also live in SQL integers


@dataclass(frozen=True, slots=True)
class Range:
    """Of an integer: `Annotated[int, Range(0, 10)]`, both ends included."""

    low: int
    high: int


@cache
def field_checks(cls: type) -> dict[str, Check]:
    """Of a dataclass, in the order of its fields."""
    hints = get_type_hints(cls, include_extras=True)
    return {f.name: check_of(hints[f.name]) for f in fields(cls)}


def check_of(hint: Any) -> Check:
    """Knows int, int in a Range, str, bytes, bool, None, Any, Literal of strings, list[X], dict[str, X], unions of them. A bool is no int here."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _ranged(*args)
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in args
    if origin in (Union, UnionType):
        return _union([check_of(arg) for arg in args])
    if origin is list:
        item = check_of(args[0])
        return lambda value: type(value) is list and all(map(item, cast(list[Any], value)))
    if origin is dict and args[0] is str:
        item = check_of(args[1])
        return lambda value: type(value) is dict and all(map(item, cast(dict[str, Any], value).values()))
    raise TypeError(f"a field of a message cannot be of type {hint}")


def _ranged(plain: type, bounds: Range) -> Check:
    if plain is not int:
        raise TypeError(f"only integers have a range, not {plain}")
    low, high = bounds.low, bounds.high
    return lambda value: type(value) is int and low <= value <= high


def _union(checks: list[Check]) -> Check:
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) or second(value)
    return lambda value: any(check(value) for check in checks)


_PLAIN: dict[Any, Check] = {
    int: lambda value: type(value) is int and -INTEGER_MAX <= value <= INTEGER_MAX,
    str: lambda value: type(value) is str,
    bytes: lambda value: type(value) is bytes,
    bool: lambda value: type(value) is bool,
    NoneType: lambda value: value is None,
    Any: lambda value: True,
}
