"""Ctrl-C while the prompt is not there; at the prompt it is a key as others."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Keys:
    """Taken for the whole session, so that there is no moment in which it would end the program, and none behind Enter in which it would be lost."""

    def __init__(self, typing: Callable[[], bool]) -> None:
        self._typing = typing  # is the prompt there? Then a signal comes from elsewhere, and means nothing
        self._meanings: list[Callable[[], object]] = []
        self._early = False

    def forget(self) -> None:
        """A new prompt: what was pressed before it is not for what is typed there."""
        self._early = False

    def hear(self) -> None:
        if self._meanings:
            self._meanings[-1]()
        elif not self._typing():
            self._early = True

    @contextmanager
    def mean(self, pressed: Callable[[], object]) -> Generator[None]:
        self._meanings.append(pressed)
        try:
            if self._early:
                self._early = False
                pressed()
            yield
        finally:
            self._meanings.pop()
