"""What is arriving: request bodies and WebSocket messages that nobody has taken yet. Together they may fill so much memory and no more."""

from __future__ import annotations

from types import TracebackType

from everforge.wire.errors import TooMany

FREE_BYTES = 64 * 1024  # of each: whoever sends little is served, whatever others send


class Arrivals:
    """All of them."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0  # held now, beyond what is free

    def new(self) -> Arrival:
        return Arrival(self)


class Arrival:
    """One of them. What it holds is given back when it ends."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._counted = 0

    def hold(self, size: int) -> None:
        """So much of it is here now. Raises TooMany, and then holds no more than before."""
        counted = max(0, size - FREE_BYTES)
        total = self._arrivals.bytes - self._counted + counted
        if counted > self._counted and total > self._arrivals.bytes_max:
            raise TooMany("the server is receiving as much as it can hold; send it again later")
        self._arrivals.bytes, self._counted = total, counted

    def end(self) -> None:
        self.hold(0)

    def __enter__(self) -> Arrival:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()
