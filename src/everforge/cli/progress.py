"""Progress on stderr: a moving line on a terminal, one plain line for each step elsewhere. stdout is for results."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from everforge.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


@contextmanager
def shown_progress() -> Generator[Progress, None, None]:
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        with console.status("") as status:
            terminal = _Terminal(console, status)
            yield terminal
            terminal.finish()
    else:
        yield _Lines()


@contextmanager
def quiet_progress() -> Generator[Progress, None, None]:
    """A moving line while it lasts, and nothing of it afterwards."""
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        with console.status("") as status:
            yield _Passing(console, status)
    else:
        yield Silent()


class _Terminal:
    def __init__(self, console: Console, status: Status) -> None:
        self._console, self._status = console, status
        self._text, self._began = "", 0.0

    def step(self, text: str) -> None:
        self.finish()
        self._text, self._began = text, time.monotonic()
        self._status.update(_plain(text))

    def count(self, done: int, total: int) -> None:
        self._status.update(_plain(f"{self._text}: {done} of {total}"))

    def warn(self, text: str) -> None:
        self._console.print("[yellow]warning:[/yellow]", _plain(text))

    def finish(self) -> None:
        """Called only when the step went well: one that failed shows no tick."""
        if self._text:
            self._console.print("[green]✓[/green]", _plain(self._text), f"[dim]{time.monotonic() - self._began:.1f} s[/dim]")
        self._text = ""


class _Passing(_Terminal):
    def finish(self) -> None:
        self._text = ""


class _Lines:
    def step(self, text: str) -> None:
        self._tell(text)

    def count(self, done: int, total: int) -> None: ...

    def warn(self, text: str) -> None:
        self._tell(f"warning: {text}")

    @staticmethod
    def _tell(text: str) -> None:
        with suppress(OSError):  # the work goes on, whoever listens
            print(f"  {text}", file=sys.stderr, flush=True)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
