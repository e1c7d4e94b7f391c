"""Text to lines, in the order it came. No I/O.

Each stream has one buffer for what the interpreter's main thread prints and what comes through the file descriptor, as a terminal would have; other
threads have buffers of their own, so that their lines do not mix.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

from ..wire.messages import Stream

SILENCE_SECONDS = 0.1  # a line without its newline is shown after this long


class Piece(NamedTuple):
    """Lines to be told now. `partial`: the last one's newline has not come."""

    stream: Stream
    lines: list[str]
    partial: bool
    origin: int | None


class LineBuffer:
    def __init__(self, stream: Stream, line_bytes_max: int) -> None:
        self.stream: Stream = stream
        self.line_bytes_max = line_bytes_max
        self.last_fed = 0.0
        self._held = ""
        self._printed = False
        self._origin: int | None = None
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2)]

    @property
    def holds(self) -> bool:
        return bool(self._held)

    @property
    def mid_print(self) -> bool:
        """An unfinished line that was printed, and not written by a subprocess."""
        return bool(self._held) and self._printed

    def feed_bytes(self, data: bytes, origin: int | None, now: float, from_descriptor: bool) -> list[Piece]:
        """Any bytes, cut anywhere; those of the descriptor and those of the ring are two sequences, each with its own half characters."""
        self._printed = not from_descriptor
        return self.feed(self._decoders[from_descriptor].decode(data), origin, now)

    def feed(self, text: str, origin: int | None, now: float) -> list[Piece]:
        pieces = self.flush() if origin != self._origin else []
        self._origin = origin
        self.last_fed = now
        long = len(self._held) + len(text) > self.line_bytes_max // 4  # only then can a line be too long, whatever its characters
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = self._held + lines[0]
            self._held = rest
        else:
            self._held += rest
        if long:
            return pieces + self._cut(lines)
        if lines:
            pieces.append(Piece(self.stream, lines, False, origin))
        return pieces

    def flush(self) -> list[Piece]:
        if not self._held:
            return []
        held, self._held = self._held, ""
        return [Piece(self.stream, [held], True, self._origin)]

    def _cut(self, lines: list[str]) -> list[Piece]:
        """Lines that are too long are told in pieces, each but the last partial."""
        pieces: list[Piece] = []
        whole: list[str] = []
        for line in lines:
            parts = split_by_bytes(line, self.line_bytes_max)
            whole.append(parts[0])
            for part in parts[1:]:
                pieces.append(Piece(self.stream, whole, True, self._origin))
                whole = [part]
        if whole:
            pieces.append(Piece(self.stream, whole, False, self._origin))
        *full, self._held = split_by_bytes(self._held, self.line_bytes_max)
        pieces += [Piece(self.stream, [part], True, self._origin) for part in full]
        return pieces


def split_by_bytes(text: str, bytes_max: int) -> list[str]:
    """Parts of at most `bytes_max` bytes of UTF-8, cut between characters. At least one part, which may be empty."""
    if len(text) * 4 <= bytes_max:
        return [text]
    data = text.encode("utf-8", "replace")
    parts: list[str] = []
    start = 0
    while len(data) - start > bytes_max:
        end = start + bytes_max
        while end > start + 1 and data[end] & 0xC0 == 0x80:  # not into the middle of a character
            end -= 1
        parts.append(data[start:end].decode("utf-8", "replace"))
        start = end
    parts.append(data[start:].decode("utf-8", "replace"))
    return parts
