"""What waits for a machine, first in, first out, with a limit; and who waits for the ends of what it accepted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from everforge.wire.errors import EverforgeError, QueueFull
from everforge.wire.events import Ended


@dataclass(slots=True)
class Instruction:
    """Accepted and on the tape; its end will be there too."""

    number: int
    code: str
    timeout_seconds: float


@dataclass(slots=True)
class Operation:
    """Something done to the machine itself, in its place among the instructions."""

    name: str
    act: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: EverforgeError) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Agenda:
    def __init__(self, limit: int) -> None:
        self._items: deque[Instruction | Operation] = deque()
        self._limit = limit
        self._reserved = 0
        self._ends: dict[int, asyncio.Future[Ended]] = {}
        self.interrupted: set[int] = set()  # to be ended without a run
        self.changed = asyncio.Event()

    def __len__(self) -> int:
        """Places taken, those of instructions on their way to the tape included."""
        return len(self._items) + self._reserved

    @property
    def empty(self) -> bool:
        return not self._items

    @property
    def unended(self) -> Sequence[int]:
        """Instructions accepted and not ended, the running one included."""
        return sorted(self._ends)

    def reserve(self) -> None:
        """Take a place before the item is written on the tape, so that what was accepted always fits."""
        if len(self) >= self._limit:
            raise QueueFull(f"{self._limit} instructions are waiting for this machine already; try again when some are done")
        self._reserved += 1

    def release(self) -> None:
        self._reserved -= 1

    def put(self, item: Instruction | Operation) -> None:
        """Instructions keep the order of their numbers, even if their writes were confirmed in another."""
        at = len(self._items)
        if isinstance(item, Instruction):
            self.expect(item.number)
            while at and isinstance(before := self._items[at - 1], Instruction) and before.number > item.number:
                at -= 1
        self._items.insert(at, item)
        self.changed.set()

    def expect(self, number: int) -> None:
        """Its end will come."""
        self._ends[number] = asyncio.get_running_loop().create_future()

    def take(self) -> Instruction | Operation | None:
        return self._items.popleft() if self._items else None

    def clear(self, refusal: EverforgeError) -> list[int]:
        """Empty it: operations fail with `refusal`; the numbers of the instructions, which must get an end on the tape, are returned."""
        items, self._items = self._items, deque()
        for item in items:
            if isinstance(item, Operation):
                item.fail(refusal)
        return [item.number for item in items if isinstance(item, Instruction)]

    def end(self, number: int) -> asyncio.Future[Ended] | None:
        return self._ends.get(number)

    def tell(self, ended: Ended) -> None:
        """It is on the tape: whoever waits may know."""
        self.interrupted.discard(ended.instruction)
        if (future := self._ends.pop(ended.instruction, None)) and not future.done():
            future.set_result(ended)

    def give_up(self, error: EverforgeError) -> None:
        """The keeper is going, for good or for worse; the tape may still say how things ended."""
        self.clear(error)
        for future in self._ends.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody may be waiting
        self._ends.clear()
