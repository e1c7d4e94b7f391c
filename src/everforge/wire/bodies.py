"""JSON from a hostile writer: plain, finite, shallow, encodable, or ValueError. No I/O."""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

# Of the objects that a body becomes: a few megabytes of `[],[],[],` would be hundreds of them. A guest tells no more than the first, since a server
# does nothing else while it reads them; guests in old snapshots may tell as much as the second.
WEIGHT_BYTES_MAX = 12 * 1024 * 1024
OLD_WEIGHT_BYTES_MAX = 64 * 1024 * 1024
HEAVIEST = 80  # what a byte of JSON weighs at most: `{},{},{},`
NESTING_MAX = 64  # lists in lists in ...: no honest display is deeper, and everything that later walks over it may recurse


_CONTAINERS = (dict, list)


def _nothing(_: str) -> None:
    """NaN and Infinity are not JSON, though Python writes them; null is the nearest thing that is."""


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None  # 1e999 is JSON, but no number that we could write again


_DECODER = json.JSONDecoder(parse_constant=_nothing, parse_float=_finite)


def parse(body: bytes, weight_bytes_max: int = WEIGHT_BYTES_MAX) -> Any:
    """Raises ValueError and nothing else."""
    if is_too_heavy(body, weight_bytes_max):
        raise ValueError("too many values")
    try:
        text = body.decode("utf-8")  # strictly: left to itself, json would guess other encodings and let half surrogate pairs pass
        found = _DECODER.decode(text)
    except RecursionError as e:
        raise ValueError("nested too deep") from e
    if text.count("[") + text.count("{") > NESTING_MAX:
        _check_nesting(found)
    if "\\ud" in text or "\\uD" in text:
        found = _without_lone_surrogates(found)
    return found


_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STRETCH = re.compile(rb'(?:[^"]*+"(?:[^"\\]++|\\.)*+"){1,4096}+[^"]*+|[^"]++', re.DOTALL)  # some strings and what is between them


def is_too_heavy(body: bytes, weight_bytes_max: int = WEIGHT_BYTES_MAX) -> bool:
    """Would its values, once read, take more memory than anyone should for one message? Roughly, and cheap where it is not close."""
    if len(body) * HEAVIEST <= weight_bytes_max or _weight_bytes(body, body.count(b'"') // 2) <= weight_bytes_max:
        return False
    weight = at = 0
    while (found := _STRETCH.match(body, at)) and weight <= weight_bytes_max:
        at = found.end()
        bare, strings = _STRING.subn(b"", found[0])  # commas and brackets within strings do not count
        weight += _weight_bytes(bare, strings) + len(found[0]) - len(bare)
    return weight > weight_bytes_max


def _weight_bytes(bare: bytes, strings: int) -> int:
    """What CPython takes: for an item and a number, the head of a string, a list, an object with a field or two."""
    return len(bare) + 40 * bare.count(b",") + 56 * strings + 64 * bare.count(b"[") + 200 * bare.count(b"{")


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(NESTING_MAX):
        # Nothing is called for what holds nothing: there may be a hundred thousand of it.
        level = [inner for outer in level for inner in (outer.values() if type(outer) is dict else outer) if inner and type(inner) in _CONTAINERS]
        if not level:
            return
    raise ValueError("nested too deep")


def _without_lone_surrogates(value: Any) -> Any:
    """JSON can spell half a surrogate pair; no database and no terminal takes it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_lone_surrogates(v) for v in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_without_lone_surrogates(k): _without_lone_surrogates(v) for k, v in cast(dict[str, Any], value).items()}
    return value
