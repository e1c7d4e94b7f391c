"""JSON from a hostile writer: plain, finite, shallow, encodable, or ValueError. No I/O."""

from __future__ import annotations

import json
import math
from typing import Any, cast

NESTING_MAX = 64  # lists in lists in ...: no honest display is deeper, and everything that later walks over it may recurse


def _nothing(_: str) -> None:
    """NaN and Infinity are not JSON, though Python writes them; null is the nearest thing that is."""


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None  # 1e999 is JSON, but no number that we could write again


_DECODER = json.JSONDecoder(parse_constant=_nothing, parse_float=_finite)


def parse(body: bytes) -> Any:
    """Raises ValueError and nothing else."""
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


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(NESTING_MAX):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError("nested too deep")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast(dict[str, Any], value).values())
    return cast(list[Any], value) if isinstance(value, list) else []


def _without_lone_surrogates(value: Any) -> Any:
    """JSON can spell half a surrogate pair; no database and no terminal takes it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_lone_surrogates(v) for v in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_without_lone_surrogates(k): _without_lone_surrogates(v) for k, v in cast(dict[str, Any], value).items()}
    return value
