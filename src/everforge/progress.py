"""How long work tells what it is doing, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def step(self, text: str) -> None:
        """A new step begins, and with it the one before is done."""
        ...

    def count(self, done: int, total: int) -> None:
        """How far the present step is."""
        ...

    def warn(self, text: str) -> None:
        """Something the reader should know, although the work goes on."""
        ...


class Silent:
    """Nobody listens."""

    def step(self, text: str) -> None: ...

    def count(self, done: int, total: int) -> None: ...

    def warn(self, text: str) -> None: ...
