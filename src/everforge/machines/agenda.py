"""What waits for a machine, first in, first out, with a limit; and who waits for the ends of what it accepted."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from everforge.wire.errors import EverforgeError, QueueFull
from everforge.wire.events import Ended

MANY_WAIT = 16  # for the end of one instruction


@dataclass(frozen=True, slots=True)
class Work:
    """What an instruction is to do, and how."""

    code: str
    timeout_seconds: float
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # for it alone
    functions: Sequence[str] = ()  # of the client's program, that it may call

    @property
    def is_plain(self) -> bool:
        """Such as every guest understands."""
        return not (self.env or self.functions)


@dataclass(slots=True)
class Instruction:
    """Accepted, or about to be; once it is on the tape, its end will be there too."""

    number: int
    work: Work
    recorded: asyncio.Future[bool] | None = None  # None: it is on the tape. Otherwise it is on its way there: True when it has come, False if not


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
        self._ends: dict[int, list[asyncio.Future[Ended]]] = {}  # who waits for each
        self._pulled_out: dict[int, asyncio.Future[None]] = {}  # instructions that are just being ended without a run
        self.changed = asyncio.Event()
        self.closed = False  # its keeper has retired, failed or stopped: nobody looks at it any more

    @property
    def empty(self) -> bool:
        return not self._items

    @property
    def unended(self) -> Sequence[int]:
        """Instructions accepted and not ended, the running one included, and those not that are just being ended."""
        return sorted(self._ends.keys() - self._pulled_out.keys())

    def check_room(self) -> None:
        if len(self._items) >= self._limit:
            raise QueueFull(f"{self._limit} instructions are waiting for this machine already; try again when some are done")

    def put_first(self, operation: Operation) -> None:
        """Before instructions that cannot run now."""
        self._items.appendleft(operation)
        self.changed.set()

    def put(self, item: Instruction | Operation) -> None:
        """An instruction takes its place before it is written on the tape: so it keeps it, what was accepted always fits, and whoever runs it can
        make everything ready meanwhile."""
        self._items.append(item)
        if isinstance(item, Instruction) and item.recorded is None:
            self.expect(item.number)
        self.changed.set()

    def confirm(self, instruction: Instruction) -> None:
        """It is on the tape."""
        recorded, instruction.recorded = instruction.recorded, None
        self.expect(instruction.number)
        if recorded is not None and not recorded.done():
            recorded.set_result(True)

    def withdraw(self, instruction: Instruction) -> None:
        """It could not be written: it never was."""
        with contextlib.suppress(ValueError):
            self._items.remove(instruction)
        if instruction.recorded is not None and not instruction.recorded.done():
            instruction.recorded.set_result(False)

    def expect(self, number: int) -> None:
        """Its end will come."""
        self._ends.setdefault(number, [])

    @property
    def first(self) -> Instruction | Operation | None:
        return self._items[0] if self._items else None

    def take(self) -> None:
        """The first one leaves its place."""
        self._items.popleft()

    def pull_out(self, numbers: Collection[int]) -> None:
        """They are not to run: whoever says so tells their ends, or puts them back."""
        loop = asyncio.get_running_loop()
        self._pulled_out |= {number: loop.create_future() for number in numbers}

    def put_back(self, numbers: Collection[int]) -> None:
        for number in numbers:
            if (future := self._pulled_out.pop(number, None)) is not None:
                future.set_result(None)

    async def is_wanted(self, number: int) -> bool:
        """Is it to run? If somebody is just ending it, when that is done."""
        while future := self._pulled_out.get(number):
            await asyncio.shield(future)
        return self.awaits(number)

    def clear(self, refusal: EverforgeError) -> None:
        """Operations fail with `refusal`; instructions on the tape are still awaited. Those on their way there stay: they come after this."""
        items, self._items = self._items, deque()
        for item in items:
            if isinstance(item, Operation):
                item.fail(refusal)
            elif item.recorded is not None:
                self._items.append(item)

    def awaits(self, number: int) -> bool:
        """Accepted and not ended?"""
        return number in self._ends

    def end(self, number: int) -> asyncio.Future[Ended] | None:
        """Will have the end; each caller's own, which it may cancel. None: it has ended, or never was."""
        waiting = self._ends.get(number)
        if waiting is None:
            return None
        if len(waiting) >= MANY_WAIT:  # most have gone away, and come again
            waiting[:] = [future for future in waiting if not future.done()]
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        return future

    def tell(self, ended: Ended) -> None:
        """It is on the tape: whoever waits may know."""
        if ended.instruction in self._pulled_out:
            self._items = deque(item for item in self._items if not (isinstance(item, Instruction) and item.number == ended.instruction))
            self.put_back([ended.instruction])
        for future in self._ends.pop(ended.instruction, ()):
            if not future.done():
                future.set_result(ended)

    def tell_stuck(self, error: EverforgeError) -> None:
        """Their ends will come, but not soon: whoever waits may ask again."""
        for future in chain.from_iterable(self._ends.values()):
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody may be waiting

    def give_up(self, error: EverforgeError) -> None:
        """The keeper is going, for good or for worse; the tape may still say how things ended."""
        self.clear(error)
        self.tell_stuck(error)
        self._ends.clear()
