"""System V shared memory of the user's. A segment that no process is attached to is memory all the same, and nobody's: it stays until somebody
removes it, and whoever filled it may be long dead.

gVisor bounds it by nothing, and has no list of segments. But it tells the newest number and the pages of all, and a segment is found by its number.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Generator
from typing import NamedTuple

from . import processes
from .limits import MIB

SEARCH_SECONDS_MAX = 0.5  # at once; numbers are not used twice, so that who makes and removes many segments leaves long gaps

_IPC_RMID, _IPC_STAT, _SHM_INFO = 0, 2, 14
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_libc = ctypes.CDLL(None, use_errno=True)


class Removed(NamedTuple):
    segments: int
    size_mb: int

    def __str__(self) -> str:
        return f"{self.segments} segment{'s' if self.segments > 1 else ''}, {self.size_mb} MB"


class _Info(ctypes.Structure):
    _fields_ = (("newest", ctypes.c_int), ("pages", ctypes.c_ulong), ("rest", ctypes.c_ulong * 8))


class _Segment(ctypes.Structure):
    _fields_ = (
        ("owner", ctypes.c_int * 12),
        ("size_bytes", ctypes.c_ulong),
        ("times", ctypes.c_long * 3),
        ("pids", ctypes.c_int * 2),
        ("attached", ctypes.c_ulong),
        ("rest", ctypes.c_ulong * 8),
    )


class Segments:
    def __init__(self) -> None:
        self._next: int | None = None  # where a search that took too long goes on the next time

    def remove_orphans(self) -> Removed:
        """Those that nobody is attached to. Only in a sandbox: elsewhere they are not ours."""
        count, before = 0, _Info()
        if not processes.is_privileged() or _libc.shmctl(0, _SHM_INFO, ctypes.byref(before)) < 0 or not before.pages:
            return Removed(0, 0)
        with _as_user():
            for number in self._orphans(before.newest, before.pages):
                count += _libc.shmctl(number, _IPC_RMID, None) == 0
        after = _Info()
        _libc.shmctl(0, _SHM_INFO, ctypes.byref(after))
        return Removed(count, (before.pages - after.pages) * _PAGE_BYTES // MIB)

    def _orphans(self, newest: int, pages: int) -> Generator[int]:
        """One that lets nobody look at it is as good as one: who is attached keeps it until the end."""
        found, deadline = _Segment(), time.monotonic() + SEARCH_SECONDS_MAX
        first, self._next = newest if self._next is None else self._next, None
        for number in range(first, -1, -1):
            if pages <= 0:
                return
            if time.monotonic() > deadline:
                self._next = number
                return
            if _libc.shmctl(number, _IPC_STAT, ctypes.byref(found)) == 0:
                pages -= -(-found.size_bytes // _PAGE_BYTES)
                if found.attached == 0:
                    yield number
            elif ctypes.get_errno() == errno.EACCES:
                yield number


@contextlib.contextmanager
def _as_user() -> Generator[None]:
    """Segments obey their owner. Meanwhile the user may change our place among the processes (nice, affinity), and nothing else: for that all of our
    ids would have to be the user's."""
    os.seteuid(processes.USER_ID)
    try:
        yield
    finally:
        os.seteuid(0)
