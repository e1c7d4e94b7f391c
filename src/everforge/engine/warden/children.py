"""Commands without blocking, and one reaper for everything that the warden inherits.

The warden is a child subreaper: when a detaching runsc command ends, the sentry and the gofer become its children. They must be reaped at once, or
`runsc delete` waits 1.7 s for a zombie.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections import OrderedDict
from collections.abc import Sequence

PR_SET_CHILD_SUBREAPER = 36
REMEMBERED_MAX = 4096  # statuses of processes that ended before anyone asked for them
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def become_subreaper() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel has no child subreapers")


class Children:
    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._ended: OrderedDict[int, int] = OrderedDict()

    def begin(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            waiting = self._waiting.pop(pid, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(status)
                continue
            self._ended[pid] = status
            if len(self._ended) > REMEMBERED_MAX:
                self._ended.popitem(last=False)

    def status(self, pid: int) -> int | None:
        """Of a process that ended, when it was ours; told once."""
        return self._ended.pop(pid, None)

    async def run(self, argv: list[str], stdio: Sequence[int], deadline_seconds: float) -> int | None:
        """The exit code (negative: a signal), or None when the deadline passed and the command was killed."""
        pid = _spawn(argv, stdio)
        self._ended.pop(pid, None)  # an earlier process of the same number
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[pid] = ended
        try:
            async with asyncio.timeout(deadline_seconds):
                return os.waitstatus_to_exitcode(await asyncio.shield(ended))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
            await ended
            return None


def _spawn(argv: list[str], stdio: Sequence[int]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, number, target) for target, number in enumerate(stdio)]
    # The interpreter ignores these two signals; a command must not inherit that.
    return os.posix_spawn(argv[0], argv, ENVIRONMENT, file_actions=actions, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
