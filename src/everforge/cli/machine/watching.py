"""An instruction, watched until it ends: what it writes goes where it belongs, Ctrl-C goes to the machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..failures import EXIT_INTERRUPTED, EXIT_RAISED, LONGER, local, say

if TYPE_CHECKING:
    from pathlib import Path

    from everforge import Display, Instruction, Line, Machine, Result

EXITS = {"value": 0, "interrupted": EXIT_INTERRUPTED, "cancelled": EXIT_INTERRUPTED}


def watch(machine: Machine, give: Callable[[], Instruction], pictures: Path | None, as_json: bool) -> int:
    """The exit code."""
    with interrupting(machine, give) as instruction:
        shown = _Shown(None if pictures is None else Pictures(pictures, f"{machine.name}-{instruction.number}"), quiet=as_json)
        result = instruction.result(on_stdout=shown.line, on_stderr=shown.line, on_display=shown.display)
    shown.end(result)
    if as_json:
        from ..tables import print_json

        saved = None if shown.pictures is None else shown.pictures.saved
        print_json({"machine_name": machine.name, **_fields(result), **({} if saved is None else {"pictures": saved})})
    return EXITS.get(result.end, EXIT_RAISED)


def _fields(result: Result) -> dict[str, Any]:
    from dataclasses import fields

    found = {field.name: getattr(result, field.name) for field in fields(result)}
    return {**found, "displays": [dict(display.data) for display in result.displays]}


class _Shown:
    """What a terminal, or whoever reads stdout and stderr, gets to see."""

    def __init__(self, pictures: Pictures | None, quiet: bool) -> None:
        self.pictures, self._quiet = pictures, quiet
        self._open: dict[str, bool] = {}  # streams whose last line has no end yet

    def line(self, line: Line) -> None:
        if self._quiet:
            return
        self._open[line.stream] = line.partial
        if line.stream == "stderr":
            say(line, end=line.end)
        else:
            print(line, end=line.end, flush=True)

    def display(self, display: Display) -> None:
        from everforge.client.results import mime_bundle

        bundle = mime_bundle(display.data)
        if self.pictures is not None:
            self.pictures.save(bundle)
        if not self._quiet and isinstance(bundle.get("text/plain"), str):
            self._print(bundle["text/plain"])

    def end(self, result: Result) -> None:
        from everforge.client.results import failure_text, mime_bundle

        if self.pictures is not None:
            self.pictures.save(mime_bundle(result.data))
        if self._quiet:
            return
        if result.ok and result.value is not None:
            self._print(result.value)
        elif not result.ok:
            shown = failure_text(result.end, result.error, result.traceback)
            self._say(shown or f"instruction {result.instruction} ended: {result.end}")
        if result.note:
            self._say(f"everforge: {result.note}")
        if result.end == "timed_out":
            self._say(f"everforge: {LONGER}")

    def _print(self, text: str) -> None:
        """On a line of its own."""
        print(("\n" if self._open.pop("stdout", False) else "") + text.rstrip("\n"), flush=True)

    def _say(self, text: str) -> None:
        say(("\n" if self._open.pop("stderr", False) else "") + text.rstrip("\n"))


class Pictures:
    """Written to files as they are shown, numbered."""

    ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg"}  # noqa: RUF012

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = folder, stem
        self.saved: list[str] = []

    def save(self, bundle: dict[str, Any]) -> None:
        """In the first format that there is of it."""
        for mime, ending in self.ENDINGS.items():
            content = _bytes(mime, bundle.get(mime))
            if content is not None:
                path = self._folder / f"{self._stem}-{len(self.saved) + 1}.{ending}"
                with local(path):
                    path.write_bytes(content)
                self.saved.append(str(path))
                say(f"everforge: wrote {path}")
                return


def _bytes(mime: str, content: object) -> bytes | None:
    import base64

    if not isinstance(content, str):
        return None
    if mime == "image/svg+xml":
        return content.encode("utf-8", "replace")
    try:
        return base64.b64decode(content, validate=True) or None
    except ValueError:
        return None  # not a picture, whatever it says


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------------------------------


@contextmanager
def interrupting(machine: Machine, give: Callable[[], Instruction]) -> Generator[Instruction]:
    """The first Ctrl-C interrupts the instruction, also when it is just being given, and its end is still waited for; the second leaves."""
    given: list[Instruction] = []
    pressed = 0

    def interrupt() -> None:
        # Not in the handler: that runs between any two steps of the request that is being waited for, and must not use its connection.
        threading.Thread(target=_interrupt, args=(given[0],), daemon=True).start()

    def on_interrupt(*_: object) -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            say("everforge: interrupting; Ctrl-C again leaves at once")
            if given:
                interrupt()
            return
        if given:
            kills = f"`everforge machine interrupt {machine.name}` kills it, with the machine's variables"
            say(f"everforge: instruction {given[0].number} of {machine.name} goes on: {kills}")
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield give()
        return
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        given.append(give())
        if pressed:
            interrupt()
        yield given[0]
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(instruction: Instruction) -> None:
    from everforge.wire.errors import EverforgeError

    try:
        instruction.interrupt()
    except EverforgeError as error:
        say(f"everforge: it could not be interrupted: {error.message}")
