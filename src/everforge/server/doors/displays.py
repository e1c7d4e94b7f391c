"""What an instruction displayed, as far as its result can tell it. The tape has all of it. No I/O."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ..answers import to_json

MB = 1024 * 1024
KEPT_BYTES_MAX = 8 * MB  # told with one result
RESULT_BYTES_MAX = 15 * MB  # ForeverVM's clients take frames of 16 MiB
TEXT_CHARACTERS_MAX = MB  # each may take twelve bytes in JSON

_LEFT_OUT = "was too large to be told here; the tape has it"


class Displays:
    """Of one instruction: the newest that fit, and the very last in any case."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Mapping[str, Any]]] = deque()
        self._bytes = 0

    def add(self, data: Mapping[str, Any]) -> None:
        size = sum(len(content) if isinstance(content, str) else len(json.dumps(content)) for content in data.values())
        self._kept.append((size, data))
        self._bytes += size
        while self._bytes > KEPT_BYTES_MAX and len(self._kept) > 1:
            self._bytes -= self._kept.popleft()[0]

    @property
    def bundles(self) -> Sequence[Mapping[str, Any]]:
        return [data for _, data in self._kept]


def in_one_frame(result: dict[str, Any]) -> dict[str, Any]:
    """The result, without what would make it too large for a client. Text that a machine's own limits have let through nearly always fits."""
    for name in ("displays", "data", "traceback"):
        if len(to_json(result)) <= RESULT_BYTES_MAX:
            return result
        if result.get(name) is not None:
            result = {**result, name: None, "note": "; ".join(filter(None, [result.get("note"), f"{name} {_LEFT_OUT}"]))}
    return {name: text[:TEXT_CHARACTERS_MAX] if isinstance(text, str) else text for name, text in result.items()}
