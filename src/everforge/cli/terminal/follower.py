"""Reads a tape and prints it: once, or for as long as there is a machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everforge import Everforge, Machine
from everforge.wire.errors import Uncertain, Unreachable
from everforge.wire.events import START

from ..connection import suggesting
from . import colours
from .cursorfile import CursorFile
from .escapes import Escapes
from .scribe import Scribe
from .transcript import Lines, Piece, pieces

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    follow: bool
    after: int | None
    instruction: int | None
    output: bool
    positions: bool
    json: bool


class Follower:
    def __init__(self, name: str, wanted: Wanted, cursor_file: Path | None) -> None:
        self._name, self._wanted, self._path = name, wanted, cursor_file
        self._lines = Lines()
        self._cursor: int | None = wanted.after
        self._scribe: Scribe | None = None
        self._escapes = Escapes() if sys.stdout.isatty() else None
        self._coloured = colours.wanted(sys.stdout)

    def run(self) -> None:
        with ExitStack() as undo:
            with Everforge() as client, suggesting(self._name):
                machine = client.machine(self._name)
                info = machine.info()
                first = START if self._wanted.instruction is None else machine.instruction(self._wanted.instruction).info().position - 1
            if self._path is not None:
                self._remember(f"{self._name}, created {info.created_at}", undo)
            self._cursor = first if self._cursor is None else self._cursor
            client = undo.enter_context(Everforge(on_connection=_tell))
            for entry in self._entries(client.machine(self._name)):
                if self._show(entry):
                    return

    def _remember(self, identity: str, undo: ExitStack) -> None:
        assert self._path is not None
        file = CursorFile(self._path, identity)
        if file.cursor is not None:
            self._cursor, self._lines.open = file.cursor, file.open
        sys.stdout.flush()
        self._scribe = Scribe(file)
        undo.callback(self._scribe.close)

    def _entries(self, machine: Machine) -> Iterator[Entry]:
        while True:
            assert self._cursor is not None
            try:
                for entry in machine.tape(after=self._cursor, follow=self._wanted.follow):
                    yield entry
                    self._cursor = entry["cursor"]
            except (Unreachable, Uncertain):
                if not self._wanted.follow:
                    raise
            else:
                return  # all of it; or the machine was deleted

    def _show(self, entry: Entry) -> bool:
        """Is this the end?"""
        only = self._wanted.instruction
        ours = only is None or entry.get("instruction") == only
        shown = [Piece(entry["cursor"], "json", json.dumps(entry))] if self._wanted.json else list(pieces(entry))
        if not ours:
            shown = [Piece(entry["cursor"], "")]
        self._write([(piece.cursor, *self._text(piece)) for piece in shown])
        return ours and only is not None and entry["type"] == "ended"

    def _text(self, piece: Piece) -> tuple[bool, bytes]:
        """With it: does it leave a line unfinished?"""
        if not piece.kind or (self._wanted.output and piece.kind not in ("stdout", "stderr", "json")):
            return self._lines.open, b""
        if piece.kind == "json":
            return False, piece.text.encode() + b"\n"
        text = piece.text
        if self._wanted.positions:
            mark = f"{piece.cursor}{'+' if piece.partial else ''} "
            before, after, text = "", "\n", mark + text.replace("\n", "\n" + mark)
        else:
            before, after = self._lines.text(piece)
        if self._escapes is not None:
            text = self._escapes.pass_on(text + after).removesuffix(after)
        if self._coloured:
            text = colours.paint(piece.kind, text)
        return self._lines.open, (before + text + after).encode("utf-8", "backslashreplace")

    def _write(self, lines: list[tuple[int, bool, bytes]]) -> None:
        if self._scribe is not None:
            self._scribe.write(lines)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(b"".join(data for _, _, data in lines))
            if self._wanted.follow:
                sys.stdout.flush()


def _tell(connected: bool) -> None:
    print("everforge: connected again" if connected else "everforge: connection lost, reconnecting...", file=sys.stderr, flush=True)
