"""Entries of a tape as people read them: what was given, what was said, how it ended. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from everforge.client.results import failure_text, lines_of, mime_bundle


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that is written in one go. `cursor` is where to go on behind it."""

    cursor: int
    kind: str  # code, stdout, stderr, value, error, note; "" for what is not shown
    text: str = ""
    partial: bool = False  # its newline has not come


def pieces(entry: Mapping[str, Any]) -> Iterator[Piece]:
    cursor: int = entry["cursor"]
    match entry["type"]:
        case "output":
            for line in lines_of(entry):
                yield Piece(line.position, line.stream, str(line), line.partial)
            return
        case "accepted":
            yield Piece(cursor, "code", ">>> " + "\n... ".join(str(entry.get("code", "")).rstrip("\n").split("\n")))
        case "displayed":
            yield Piece(cursor, "note", shown_as(entry["data"]))
        case "ended":
            yield _end(entry, cursor)
        case "lost":
            yield Piece(cursor, "note", f"[the machine is back where it was at position {entry.get('since_position')}: {entry.get('reason')}]")
        case _:
            yield Piece(cursor, "")


def _end(entry: Mapping[str, Any], cursor: int) -> Piece:
    note = entry.get("note")
    remark = f"[{note}]" if note else ""
    if entry["end"] == "value":
        parts = [entry.get("value") or "", remark]
        kind = "value" if parts[0] else "note"
    else:
        parts = [failure_text(entry["end"], entry.get("error"), entry.get("traceback")) or f"[{entry['end']}]", remark]
        kind = "error"
    text = "\n".join(part for part in parts if part)
    return Piece(cursor, kind if text else "", text)


def shown_as(data: Mapping[str, Any]) -> str:
    """Of something displayed, where only text can be shown."""
    bundle = mime_bundle(data)
    text = bundle.get("text/plain")
    return str(text) if text else f"[{', '.join(sorted(bundle)) or 'nothing'}]"


class Lines:
    """Puts pieces one under the other: an unfinished line is finished before anything but output follows it."""

    def __init__(self, *, open: bool = False) -> None:
        self.open = open  # the last line has no newline yet

    def text(self, piece: Piece) -> tuple[str, str]:
        """What goes before the piece, and what behind it."""
        if not piece.kind:
            return "", ""
        before = "\n" if self.open and piece.kind not in ("stdout", "stderr") else ""
        if piece.text or not piece.partial:
            self.open = piece.partial
        return before, "" if piece.partial else "\n"
