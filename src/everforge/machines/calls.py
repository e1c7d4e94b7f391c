"""Calls of functions of the client's program by one instruction: which wait for an answer, and which answers the guest has not got.

An answer is on the tape before it is sent. So whoever comes after a crash or a sleep knows from the tape what was answered, and from the guest's
hello what of that it still waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from everforge.wire.errors import ProtocolError, WrongState
from everforge.wire.events import Position
from everforge.wire.messages import CALLS_MAX, CALLS_OPEN_MAX, CALLS_TOTAL_BYTES_MAX, Call


class Calls:
    def __init__(self, functions: Sequence[str], known: Mapping[int, Position | None] | None = None) -> None:
        """`known`: those on the tape, with the positions of their answers."""
        known = known or {}
        self._functions = frozenset(functions)
        self._next = max(known, default=-1) + 1
        self._told_bytes = 0  # by the guest, to this server
        self._open = {call for call, answered in known.items() if answered is None}
        self._claimed: set[int] = set()  # their answers are on their way to the tape
        self._answered = {call: answered for call, answered in known.items() if answered is not None}
        self._undelivered: set[int] = set()
        self._moved: asyncio.Future[None] | None = None
        self.on_change: Callable[[], None] = lambda: None

    @property
    def waiting(self) -> bool:
        """Does the code wait for an answer? With several threads: does any of them."""
        return bool(self._open or self._claimed or self._undelivered)

    @property
    def any(self) -> bool:
        """Has the code called anything?"""
        return bool(self._open or self._answered)

    @property
    def undelivered(self) -> list[tuple[int, Position]]:
        """Calls whose answers are on the tape and not with the guest."""
        return [(call, self._answered[call]) for call in sorted(self._undelivered)]

    # --- what the guest says -----------------------------------------------------------------------------------------------------------

    def take(self, call: Call, size_bytes: int) -> None:
        """Raises ProtocolError for one that an honest guest does not make."""
        self._told_bytes += size_bytes
        if self._told_bytes > CALLS_TOTAL_BYTES_MAX:
            raise ProtocolError(f"the guest told of calls with more than the {CALLS_TOTAL_BYTES_MAX} bytes that they may have together")
        if call.function not in self._functions or not self._next <= call.call < CALLS_MAX or len(self._open) >= CALLS_OPEN_MAX:
            raise ProtocolError(f"the guest told of call {call.call}, which cannot be")
        self._next = call.call + 1
        self._open.add(call.call)
        self._change()

    def drop(self, call: int, position: Position) -> bool:
        """Nobody waits for it any more. False when it has its answer."""
        if call not in self._open:
            return False
        self._open.discard(call)
        self._answered[call] = position
        self._change()
        return True

    def arrive(self, waiting: Iterable[int]) -> None:
        """In a guest that waits for these calls, as it says itself."""
        self._undelivered = {call for call in waiting if call in self._answered}

    def expect_answers_after(self, position: Position) -> None:
        """Of a sleeping machine: what was answered behind the position of its snapshot is not in it."""
        self._undelivered = {call for call, answered in self._answered.items() if answered > position}

    # --- what clients say --------------------------------------------------------------------------------------------------------------

    def claim(self, call: int) -> None:
        """The one who answers. Raises WrongState for everybody else."""
        if call not in self._open:
            known = call in self._answered or call in self._claimed
            raise WrongState(f"call {call} has its answer already, or is no longer waited for" if known else f"there is no call {call} to answer")
        self._open.discard(call)
        self._claimed.add(call)

    def unclaim(self, call: int) -> None:
        """It could not be written."""
        self._claimed.discard(call)
        self._open.add(call)

    def answer(self, call: int, position: Position) -> None:
        """It is on the tape."""
        self._claimed.discard(call)
        self._answered[call] = position
        self._undelivered.add(call)
        self._change()

    def delivered(self, call: int) -> None:
        self._undelivered.discard(call)

    # --- who waits for a change --------------------------------------------------------------------------------------------------------

    def next_change(self) -> asyncio.Future[None]:
        if self._moved is None or self._moved.done():
            self._moved = asyncio.get_running_loop().create_future()
        return self._moved

    def _change(self) -> None:
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)
        self.on_change()
