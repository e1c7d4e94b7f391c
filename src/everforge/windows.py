"""How often something came lately, by who or what it was: in windows of time, each of which begins with the first, and for so many keys."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Window:
    began: float
    before: int = 0  # how many the last window of the same key had, where it is remembered
    count: int = 0  # by whoever asked for it: not everything that comes has to count


class Windows(Generic[K]):
    def __init__(self, seconds: float, keys_max: int) -> None:
        """Beyond so many keys the one whose window began first is forgotten: whoever comes under many names takes no memory."""
        self.seconds = seconds
        self._keys_max = keys_max
        self._windows: dict[K, Window] = {}  # in the order in which they began

    def at(self, key: K, now: float) -> Window:
        """The window that is under way, or one that begins now."""
        last = self._windows.get(key)
        if last is not None and now < last.began + self.seconds:
            return last
        self._windows.pop(key, None)
        if len(self._windows) >= self._keys_max:
            del self._windows[next(iter(self._windows))]
        window = self._windows[key] = Window(now, last.count if last else 0)
        return window

    def __len__(self) -> int:
        return len(self._windows)
