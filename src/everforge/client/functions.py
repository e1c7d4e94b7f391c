"""Functions of this program that code in a machine may call: what they may be, and their answers. No I/O."""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Callable, Mapping
from typing import Any, cast

from everforge.wire import api
from everforge.wire.errors import InvalidInput
from everforge.wire.messages import CALL_BYTES_MAX
from everforge.wire.sentences import show

Functions = Mapping[str, Callable[..., Any]]
ERROR_CHARACTERS_MAX = 4000  # of what a function raised


def checked(functions: object, *, asynchronous: bool) -> Functions:
    """By the names that the code has for them; InvalidInput before anything is run."""
    if functions is None:
        return {}
    if not isinstance(functions, Mapping):
        raise InvalidInput(f"functions is {show(functions)}: give a dict of names and functions, as {{'ask': ask}}")
    found = cast("Mapping[object, object]", functions)
    for name, function in found.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise InvalidInput(f"{show(name)} cannot be the name of a function: use one that Python takes, as 'ask'")
        if not callable(function):
            raise InvalidInput(f"{name} is {show(function)}, which cannot be called: give a function")
        if not asynchronous and inspect.iscoroutinefunction(function):
            raise InvalidInput(f"{name} is an async function: use the async client, or give a plain one")
    return dict(cast(Functions, found))


def returned(function: str, value: object) -> api.Answer:
    """An error of the call, where it is not what the machine could be given."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as e:
        return refused(function, f"it is not JSON ({e})")
    if len(text) > CALL_BYTES_MAX:
        return refused(function, f"an answer may have {CALL_BYTES_MAX} bytes as JSON, not {len(text)}: write long data to a file of the machine")
    return api.Answer(value=value)


def raised(error: Exception) -> api.Answer:
    try:
        text = str(error)
    except Exception:  # of the user's own making
        text = "its message cannot be shown"
    return _error(f"{type(error).__name__}: {text}")


def refused(function: str, why: str) -> api.Answer:
    return _error(f"{function} returned what cannot be sent: {why}")


def _error(text: str) -> api.Answer:
    return api.Answer(error=text[:ERROR_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode())
