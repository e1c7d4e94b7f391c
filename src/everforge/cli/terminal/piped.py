"""A program at the prompt: what comes in is run, what comes out is printed, and the exit code says whether anything raised."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial

from everforge import Display, Everforge, Line, Machine, Result
from everforge.client.results import failure_text

from ..connection import suggesting
from ..failures import LONGER
from ..machine.watching import interrupting
from .blocks import blocks
from .pictures import Pictures, picture_of
from .transcript import shown_as

RAISED = 1
INTERRUPTED = 130


def feed(name: str | None, timeout_seconds: float | None, tags: Mapping[str, str]) -> int:
    with Everforge(on_connection=_tell) as client:
        machine = client.create(tags=tags) if name is None else client.machine(name)
        if name is None:
            _note(machine.name)
        else:
            with suggesting(name):
                machine.info()
        return _Feed(machine, timeout_seconds).run()


class _Feed:
    def __init__(self, machine: Machine, timeout_seconds: float | None) -> None:
        self._machine, self._timeout_seconds = machine, timeout_seconds
        self._pictures = Pictures(machine.name, "none")
        self._shown = 0

    def run(self) -> int:
        """Stops at the first one that raises, as a script does."""
        with self._machine.repl() as repl:
            for code in blocks(sys.stdin):
                try:
                    # This one alone is interrupted: others may have given the machine more.
                    with interrupting(self._machine, partial(repl.exec, code, timeout_seconds=self._timeout_seconds)) as instruction:
                        result = instruction.result(on_stdout=self._out, on_stderr=self._err, on_display=self._show)
                except KeyboardInterrupt:
                    return INTERRUPTED
                self._end(result)
                if not result.ok:
                    return INTERRUPTED if result.end == "interrupted" else RAISED
        return 0

    def _out(self, line: Line) -> None:
        sys.stdout.write(_encodable(line + line.end))
        sys.stdout.flush()

    def _err(self, line: Line) -> None:
        sys.stderr.write(_encodable(line + line.end))
        sys.stderr.flush()

    def _show(self, display: Display) -> None:
        picture = picture_of(display.data)
        if picture is None:
            self._out(Line(shown_as(display.data)))
        else:
            self._shown += 1
            sys.stderr.write(self._pictures.shown(*picture, number=self._shown))

    def _end(self, result: Result) -> None:
        if result.ok and result.value is not None:
            self._out(Line(result.value))
        elif not result.ok:
            self._err(Line(failure_text(result.end, result.error, result.traceback) or result.end))
        if result.note:
            _note(result.note)
        if result.end == "timed_out":
            _note(LONGER)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _note(text: str) -> None:
    print(f"everforge: {text}", file=sys.stderr, flush=True)


def _tell(connected: bool) -> None:
    _note("connected again" if connected else "connection lost, reconnecting...")
