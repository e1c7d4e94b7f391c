"""Signals in the interpreter: a handler may raise into the user's code, never into ours.

Between instructions, and while a result is being told, an exception out of a handler (an alarm that raises TimeoutError is the usual one) would
hit the loop that serves the agent. So every Python-level handler is registered through a shell that lets exceptions pass only while user code runs.
Code of ours that runs in the middle of the user's has signals held: they are heard when it is done.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_set = signal.signal
_get = signal.getsignal


class SignalGuard:
    def __init__(self) -> None:
        self.armed = False
        self.interrupted = False  # KeyboardInterrupt was raised into the running instruction
        self.held = False  # set by the main thread alone, which is where handlers run
        self.handled: Callable[[], None] = lambda: None  # called after a handler of the user's that did not raise
        self._handlers: dict[int, Any] = {}
        self._own: dict[int, Callable[[], None]] = {}
        self._late: list[int] = []  # came while signals were held

    def install(self) -> None:
        signal.signal = self.signal  # pyright: ignore[reportAttributeAccessIssue]
        signal.getsignal = self.getsignal  # pyright: ignore[reportAttributeAccessIssue]
        self.signal(signal.SIGINT, signal.default_int_handler)

    def install_own(self, number: int, action: Callable[[], None]) -> None:
        """A signal between the agent and us, which no code of the user's should touch."""
        self._own[number] = action
        _set(number, self._hear)

    def signal(self, signalnum: int, handler: Any, /) -> Any:
        """Stands in for signal.signal."""
        before = self.getsignal(signalnum)
        if callable(handler) and not isinstance(handler, signal.Handlers):
            _set(signalnum, self._hear)
            self._handlers[int(signalnum)] = handler
        else:
            _set(signalnum, handler)
            self._handlers.pop(int(signalnum), None)
        return before

    def getsignal(self, signalnum: int, /) -> Any:
        found = _get(signalnum)
        return self._handlers.get(int(signalnum), found) if found == self._hear else found

    def release(self) -> None:
        """What came while signals were held is heard now: an interrupt first, since whatever raises puts the others off until the next time."""
        self.held = False
        while self._late:
            self._late.sort(key=lambda number: number != signal.SIGINT)
            self._hear(self._late.pop(0), None)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.held:
            if number not in self._late:
                self._late.append(number)
            return
        if (own := self._own.get(number)) is not None:
            own()
            return
        handler = self._handlers.get(number)
        if handler is None:
            return
        if self.armed:
            self.interrupted = self.interrupted or handler is signal.default_int_handler
            handler(number, frame)
            self.handled()
        elif handler is not signal.default_int_handler:
            self._call_quietly(handler, number, frame)

    def _call_quietly(self, handler: Any, number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as e:
            name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
            print(f"a handler of {name} raised {type(e).__name__} between instructions: {e}", file=sys.stderr)
