"""Places where a crash may happen. Every write and every act of a keeper passes here before and after, under a name.

A test that listens to one run of an operation has the list of its steps from the code itself, and can then end the process at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

Listener = Callable[[str], None]


class Steps:
    def __init__(self, listener: Listener | None = None) -> None:
        self._listener = listener

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        if self._listener is None:
            yield
            return
        self._listener(f"before {name}")
        yield
        self._listener(f"after {name}")
