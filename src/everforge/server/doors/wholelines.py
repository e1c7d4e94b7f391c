"""ForeverVM's clients get whole lines: a line that was told in parts is put together again. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everforge.wire.events import Output

HELD_CHARACTERS_MAX = 1024 * 1024  # of a line without an end; then it is given out as it is


class WholeLines:
    """Of one instruction: what is given out is numbered from 0."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._held = 0
        self._next = 0

    def add(self, output: Output) -> Iterator[dict[str, Any]]:
        """The chunks that are whole now."""
        lines, parts = output.lines, self._parts[output.stream]
        for at, line in enumerate(lines):
            if output.partial and at == len(lines) - 1:
                parts.append(line)
                self._held += len(line)
                if self._held > HELD_CHARACTERS_MAX:
                    yield from self.rest()
            elif parts:
                parts.append(line)
                yield self._give(output.stream)
            else:
                yield self._chunk(output.stream, line)

    def rest(self) -> Iterator[dict[str, Any]]:
        """Last lines that never had a newline."""
        for stream, parts in self._parts.items():
            if parts:
                yield self._give(stream)

    def _give(self, stream: str) -> dict[str, Any]:
        line = "".join(self._parts[stream])
        self._held -= len(line)
        self._parts[stream].clear()
        return self._chunk(stream, line)

    def _chunk(self, stream: str, line: str) -> dict[str, Any]:
        chunk = {"stream": stream, "data": line, "seq": self._next}
        self._next += 1
        return chunk
