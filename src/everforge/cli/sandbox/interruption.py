"""Ctrl-C, while there is something to clean up: heard once, and then what was begun is put away undisturbed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from ..failures import say

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last when a terminal is closed: nothing is to outlive it either
WORD_AFTER_SECONDS = 1.0  # what is put away sooner needs no words
WORDS = "everforge: cleaning up: ending the machines, and the server if one was started for this"


class Interruption:
    """Raises at the first signal. Whatever comes once a block of it was left, and things are put away, is kept for the end."""

    def __init__(self) -> None:
        self._putting_away, self._kept = False, 0
        self._word = threading.Timer(WORD_AFTER_SECONDS, say, (WORDS,))
        self._word.daemon = True

    def __enter__(self) -> Interruption:
        return self

    def __exit__(self, *_: object) -> None:
        self._putting_away = True

    def hear(self, number: int, frame: FrameType | None) -> None:
        if not self._word.is_alive() and not self._word.finished.is_set():
            self._word.start()
        if self._putting_away:
            self._kept = number
            return
        self._putting_away = True
        self._raise(number)

    def over(self) -> None:
        self._word.cancel()
        if self._kept:
            self._raise(self._kept)

    @staticmethod
    def _raise(number: int) -> None:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def interruptible() -> Generator[Interruption]:
    """For as long as the block lasts. A signal that is ignored (`nohup`) stays so."""
    interruption = Interruption()
    ours = threading.current_thread() is threading.main_thread()  # nobody else may say what becomes of a signal
    before = {number: signal.getsignal(number) for number in SIGNALS if ours and signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, interruption.hear)
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        interruption.over()
