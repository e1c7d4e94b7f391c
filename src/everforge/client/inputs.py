"""What a program gives to the SDK, looked at before it goes anywhere: InvalidInput with a sentence, and never a TypeError from the depths. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import show


def code(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"code is {show(value)}: give Python code as a string")
    encoded("code", value)
    return value


def encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        raise InvalidInput(
            f"{what} has half of a surrogate pair at character {e.start}, which UTF-8 does not know: take it out, or give bytes"
        ) from e


def timeout_seconds(value: object) -> float | None:
    """How long code may run."""
    if value is not None and not (_is_finite(value) and cast(float, value) > 0):
        raise InvalidInput(f"timeout_seconds is {show(value)}: give a number of seconds above 0, or leave it out")
    return cast("float | None", value)


def wait_seconds(value: object, name: str = "wait_seconds") -> float | None:
    """How long the caller has."""
    if value is not None and not (_is_finite(value) and cast(float, value) >= 0):
        raise InvalidInput(f"{name} is {show(value)}: give a number of seconds, 0 or more, or leave it out")
    return cast("float | None", value)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(value: object) -> int:
    """Of an instruction."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidInput(f"{show(value)} is not the number of an instruction: give the `number` of one, from 0 on")
    return value


def env(value: object) -> dict[str, str] | None:
    if value is None or value == {}:
        return None
    found: Any = value
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for pair in found.items() for word in pair):
        raise InvalidInput(f"env is {show(found)}: give a dict of strings, as {{'NAME': 'value'}}")
    return dict(found)


def content(value: object) -> bytes:
    """Of a file."""
    if isinstance(value, str):
        return encoded("the content", value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(cast(bytes, value))
    raise InvalidInput(f"{show(value)} is not the content of a file: give a string, bytes, or a file that is open for reading")
