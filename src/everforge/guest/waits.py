"""Who waits for answers of the client's program, in the interpreter: one wait for each call, and for how long any of them has waited."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any


class Wait:
    """One thread, until its answer is there."""

    def __init__(self, instruction: int) -> None:
        self.instruction = instruction
        self.number = -1
        self.told = False  # the agent knows of it
        self._value: Any = None
        self._error: BaseException | None = None
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def end(self, value: Any, error: BaseException | None) -> None:
        self._value, self._error = value, error
        self._lock.release()

    def wait(self) -> Any:
        self._lock.acquire()
        if self._error is not None:
            raise self._error
        return self._value


class Waits:
    """Of the running instruction. A wait is taken out once: by its answer, by an interrupt, or by the end of the instruction."""

    def __init__(self) -> None:
        self._open: dict[int, Wait] = {}
        self._lock = threading.RLock()
        self._seconds = 0.0
        self._since = 0.0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seconds(self) -> float:
        """In which at least one of them waited."""
        with self._lock:
            return self._seconds + (time.perf_counter() - self._since if self._open else 0.0)

    def add(self, wait: Wait) -> None:
        with self._lock:
            if not self._open:
                self._since = time.perf_counter()
            self._open[wait.number] = wait

    def take(self, number: int) -> Wait | None:
        with self._lock:
            seconds = self.seconds
            wait = self._open.pop(number, None)
            if not self._open:
                self._seconds = seconds
            return wait

    def take_all(self) -> list[Wait]:
        with self._lock:
            return [wait for number in list(self._open) if (wait := self.take(number)) is not None]

    def begin_anew(self) -> None:
        with self._lock:
            self._seconds = 0.0
