"""Places where a crash may happen. Every write and every act of a keeper passes here before and after, under a name.

A test that listens to one run of an operation has the list of its steps from the code itself, and can then end the process at each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

Listener = Callable[[str], None]


class Steps:
    def __init__(self, listener: Listener | None = None) -> None:
        self._listener = listener

    def step(self, name: str) -> AbstractContextManager[None]:
        return _NOBODY_LISTENS if self._listener is None else _Step(self._listener, name)


class _Step:
    """Cheaper than a generator: a trivial instruction passes three."""

    def __init__(self, listener: Listener, name: str) -> None:
        self._listener = listener
        self._name = name

    def __enter__(self) -> None:
        self._listener(f"before {self._name}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self._listener(f"after {self._name}")


_NOBODY_LISTENS = nullcontext()
