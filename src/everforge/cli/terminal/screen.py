"""What a person at the prompt sees: output above the prompt or after it, one thing under the other, and a word about what is waited for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Any

from prompt_toolkit.application import run_in_terminal

from . import colours
from .escapes import Escapes
from .pictures import Pictures, picture_of, way
from .transcript import Lines, Piece, pieces

CLEAR_LINE = "\r\x1b[K"
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_SECONDS = 0.1
HELD_CHARACTERS_MAX = 64 * 1024  # of an unfinished line while the prompt is there


class Screen:
    def __init__(self, machine: str, write: Callable[[str], object] | None = None) -> None:
        self._lines, self._escapes = Lines(), Escapes()
        self._coloured = colours.wanted(sys.stdout)
        self._pictures = Pictures(machine, way())
        self._pictures_shown = 0
        self._direct = write or _write
        self._above = ""  # for above the prompt, as soon as its line is whole
        self._drawing: asyncio.Task[None] | None = None
        self._spinner: asyncio.Task[None] | None = None
        self.prompting = False

    # --- what happens in the machine -------------------------------------------------------------------------------------------------------

    def show(self, entry: Mapping[str, Any]) -> None:
        picture = picture_of(entry.get("data")) if entry["type"] in ("displayed", "ended") else None
        if picture is not None:
            self.wait_for(None)
            self._pictures_shown += 1
            self._write(("\n" if self._lines.open else "") + self._pictures.shown(*picture, number=entry["position"]))
            self._lines.open = False
        if picture is None or entry["type"] == "ended":
            for piece in pieces(entry):
                self._piece(piece)

    def say(self, text: str, kind: str = "note") -> None:
        """Something of our own."""
        self._piece(Piece(0, kind, text))

    def _piece(self, piece: Piece) -> None:
        if not piece.kind:
            return
        before, after = self._lines.text(piece)
        text = self._escapes.pass_on(piece.text + after).removesuffix(after)
        if self._coloured:
            text = colours.paint_traceback(text) if piece.kind == "error" else colours.paint(piece.kind, text)
        self.wait_for(None)
        self._write(before + text + after)

    # --- what is waited for ----------------------------------------------------------------------------------------------------------------

    def wait_for(self, what: str | None) -> None:
        """A moving line that is gone as soon as there is something to see."""
        if self._spinner is not None:
            self._spinner.cancel()
            self._spinner = None
            self._direct(CLEAR_LINE)
        if what is not None and not self.prompting:
            if self._lines.open:
                self._write("\n")
                self._lines.open = False
            self._spinner = asyncio.get_running_loop().create_task(self._spin(what))

    async def _spin(self, what: str) -> None:
        count = 0
        while True:
            self._direct(f"{CLEAR_LINE}{FRAMES[count % len(FRAMES)]} {what}")
            count += 1
            await asyncio.sleep(FRAME_SECONDS)

    # --- the prompt ------------------------------------------------------------------------------------------------------------------------

    def begin_prompt(self) -> None:
        self.wait_for(None)
        if self._lines.open:
            self._write("\n")
            self._lines.open = False
        self.prompting = True

    async def end_prompt(self) -> None:
        self.prompting = False
        if self._drawing is not None:
            await asyncio.wait([self._drawing])
        rest, self._above = self._above, ""
        self._direct(rest)

    def _write(self, text: str) -> None:
        if not self.prompting:
            self._direct(text)
            return
        self._above += text
        if len(self._above) > HELD_CHARACTERS_MAX and "\n" not in self._above:
            self._above += "\n"
        if self._drawing is None and "\n" in self._above:
            self._drawing = asyncio.get_running_loop().create_task(self._draw_above())

    async def _draw_above(self) -> None:
        try:
            while self.prompting and "\n" in self._above:
                whole, newline, self._above = self._above.rpartition("\n")
                await run_in_terminal(lambda text=whole + newline: self._direct(text))
        finally:
            self._drawing = None


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
