"""Calls of functions of the client's program, seen from the agent: which of them wait for an answer, and for how long."""

from __future__ import annotations

import time

from ..wire.errors import ProtocolError
from ..wire.messages import CALLS_MAX, CALLS_OPEN_MAX, CALLS_TOTAL_BYTES_MAX, Answer, Call, CallDropped, Run, decode_from_interpreter, encode
from .link import GuestLink
from .outlet import Outlet


class Calls:
    """Of the instruction that runs."""

    def __init__(self, link: GuestLink, outlet: Outlet) -> None:
        self.open: set[int] = set()
        self._link = link
        self._outlet = outlet
        self._run: Run | None = None
        self._next = 0
        self._told_bytes = 0
        self._waited = 0.0
        self._since = 0.0

    @property
    def waited_seconds(self) -> float:
        return self._waited + (time.monotonic() - self._since if self.open else 0.0)

    def begin(self, run: Run) -> None:
        self._run, self._next, self._told_bytes, self._waited = run, 0, 0, 0.0
        self.open.clear()

    def end(self) -> None:
        self._run = None
        self.open.clear()

    def take(self, body: bytes) -> None:
        """What the interpreter says was called. Raises ProtocolError when it cannot be."""
        call = decode_from_interpreter(Call.kind, body)
        assert isinstance(call, Call)
        if self._run is None or call.instruction != self._run.instruction:
            return  # a thread that was just too late
        if call.function not in self._run.functions or not self._next <= call.call < CALLS_MAX or len(self.open) >= CALLS_OPEN_MAX:
            raise ProtocolError("a call came that cannot be")
        told = encode(call)  # as the keeper counts it: what came may have been spelled shorter
        self._told_bytes += len(told)
        if len(told) > Call.body_bytes_max or self._told_bytes > CALLS_TOTAL_BYTES_MAX:
            raise ProtocolError("calls came that are larger than they may be")
        self._next = call.call + 1
        if not self.open:
            self._since = time.monotonic()
        self.open.add(call.call)
        self._outlet.flush()
        self._link.send_encoded(Call.kind, told)

    def drop(self, body: bytes) -> None:
        dropped = decode_from_interpreter(CallDropped.kind, body)
        assert isinstance(dropped, CallDropped)
        if self._close(dropped.instruction, dropped.call):
            self._outlet.flush()
            self._link.send(dropped)

    def answer(self, answer: Answer) -> bool:
        """Does anybody wait for it? Not when it has come before, or the instruction is over."""
        return self._close(answer.instruction, answer.call)

    def _close(self, instruction: int, call: int) -> bool:
        if self._run is None or instruction != self._run.instruction or call not in self.open:
            return False
        waited = self.waited_seconds
        self.open.discard(call)
        if not self.open:
            self._waited = waited
        return True
