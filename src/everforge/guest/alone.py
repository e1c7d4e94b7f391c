"""A lock that refuses the thread that has it already, instead of waiting for ever.

A destructor of the user's may run in the middle of anything of ours, and call whatever it likes.
"""

from __future__ import annotations

import _thread
from typing import Self


class Alone:
    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._owner = 0

    def __enter__(self) -> Self:
        thread = _thread.get_ident()
        if self._owner == thread:
            raise RuntimeError("functions of the client's program cannot be called from a destructor")
        self._lock.acquire()
        self._owner = thread
        return self

    def __exit__(self, *_error: object) -> None:
        self._owner = 0
        self._lock.release()
