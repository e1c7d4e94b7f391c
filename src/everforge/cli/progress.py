"""Progress on stderr: a moving line on a terminal, one plain line for each step elsewhere. stdout is for results."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
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


SPINNER_AFTER_SECONDS = 0.5  # what is done sooner needs none


@contextmanager
def waiting(text: str) -> Generator[None]:
    """On a terminal a spinner, when it takes a while; elsewhere nothing."""
    if not sys.stderr or not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    spinning = threading.Thread(target=_spin, args=(text, over), daemon=True)
    spinning.start()
    try:
        yield
    finally:
        over.set()
        spinning.join()


def _spin(text: str, over: threading.Event) -> None:
    if over.wait(SPINNER_AFTER_SECONDS):
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(_plain(text)):
        over.wait()


@contextmanager
def transfer(text: str) -> Generator[Callable[[int, int | None], None] | None]:
    """Told of bytes that went, and of how many; on a terminal a bar that shows it."""
    if not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(_plain(text), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
