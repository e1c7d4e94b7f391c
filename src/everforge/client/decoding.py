"""From a server's JSON to the types of the wire. Lenient on purpose: what a younger server adds is let pass, what is missing is an error. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from everforge.wire.errors import ProtocolError
from everforge.wire.sentences import say

T = TypeVar("T")
Reader = Callable[[Any], Any]


def decode(cls: type[T], body: bytes) -> T:
    return read(cls, parse(body))


def parse(body: bytes | str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise ProtocolError(say("answer_not_json")) from e
    if not isinstance(found, dict):
        raise ProtocolError(say("answer_not_object"))
    return cast(dict[str, Any], found)


def read(cls: type[T], value: Any) -> T:
    return _reader(cls)(value)


def entry(value: dict[str, Any]) -> dict[str, Any] | None:
    """An entry of a tape; None for a type that this client is too young for."""
    needed = ENTRIES.get(str(value.get("type")))
    if needed is None:
        return None
    if not all(type(value.get(name)) is kind for name, kind in needed.items()):
        raise ProtocolError(say("entry_bad", entry=json.dumps(value)[:200]))
    return value


_PLACE = {"position": int, "cursor": int}
ENTRIES: dict[str, dict[str, type]] = {  # what must be there to be worked with
    "accepted": {**_PLACE, "instruction": int},
    "output": {**_PLACE, "stream": str, "lines": list},
    "displayed": {**_PLACE, "data": dict},
    "ended": {**_PLACE, "instruction": int, "end": str, "runtime_ms": int},
    "called": {**_PLACE, "instruction": int, "call": int, "function": str},
    "answered": {**_PLACE, "instruction": int, "call": int},
    "moved": _PLACE,
    "lost": _PLACE,
}


@cache
def _reader(hint: Any) -> Reader:
    if is_dataclass(hint):
        return _dataclass_reader(cast(type, hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin is list and is_dataclass(args[0]):
        return _list_reader(_reader(args[0]))
    if origin in (Union, UnionType):
        for arg in args:
            if is_dataclass(arg):
                inner = _reader(arg)
                return lambda value: None if value is None else inner(value)
    return lambda value: value


def _list_reader(item: Reader) -> Reader:
    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise ProtocolError("the server's answer has something else where a list should be")
        return [item(one) for one in cast(list[Any], value)]

    return convert


def _dataclass_reader(cls: type) -> Reader:
    hints = get_type_hints(cls)
    names = fields(cls)
    readers = {f.name: _reader(hints[f.name]) for f in names}
    needed = [f.name for f in names if f.default is MISSING and f.default_factory is MISSING]

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ProtocolError(f"the server's answer is not a {cls.__name__}")
        found = cast(Mapping[str, Any], value)
        if missing := [name for name in needed if name not in found]:
            raise ProtocolError(say("answer_lacks", names=", ".join(missing)))
        return cls(**{name: reader(found[name]) for name, reader in readers.items() if name in found})

    return convert
