"""The host processes of sandboxes: found in /proc by their command line, held by pidfd."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everforge.wire.ids import SANDBOX_ID

PROC = Path("/proc")
STATE_BYTES_MAX = 1024 * 1024


def _arguments(pid: int, proc: Path = PROC) -> list[str]:
    try:
        with open(proc / str(pid) / "cmdline", "rb") as file:
            return [os.fsdecode(a) for a in file.read(64 * 1024).split(b"\0")[:-1]]
    except OSError:
        return []


def sandbox_of(arguments: list[str], state: Path) -> str | None:
    """The id of the sandbox that a process with these arguments belongs to, when it is a runsc of this state folder."""
    if f"--root={state}" not in arguments:
        return None
    # The sentry has its id as the last argument, the gofer in the path of its bundle.
    for argument in [arguments[-1], *(Path(a.removeprefix("--bundle=")).name for a in arguments)]:
        if SANDBOX_ID.fullmatch(argument):
            return argument
    return None


def scan(state: Path, proc: Path = PROC) -> dict[str, list[int]]:
    """Every living process of every sandbox of this state folder, known or not."""
    found: dict[str, list[int]] = defaultdict(list)
    for pid in _numbers(proc):
        id = sandbox_of(_arguments(pid, proc), state)
        if id is not None:
            found[id].append(pid)
    return dict(found)


def _numbers(proc: Path) -> Iterator[int]:
    return (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def recorded(id: str, state: Path) -> tuple[int, int] | None:
    """Numbers of sentry and gofer as runsc wrote them down: much cheaper than a scan."""
    try:
        with open(state / f"{id}_sandbox:{id}.state", "rb") as file:
            found: Any = json.loads(file.read(STATE_BYTES_MAX))
        return int(found["sandbox"]["pid"]), int(found["goferPid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Process:
    """A process that may or may not be our child. The pidfd makes sure that it is this one and not a later one of the same number."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self._fd = fd
        self._ended: asyncio.Future[None] | None = None

    @classmethod
    def open(cls, pid: int, id: str, state: Path) -> Process | None:
        """None when there is no such process of this sandbox (any more). Raises OSError when that cannot be found out: no descriptor is free."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        if sandbox_of(_arguments(pid), state) != id:  # checked after opening: the number may have been another's meanwhile
            os.close(fd)
            return None
        return cls(pid, fd)

    def kill(self) -> None:
        try:
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        except ProcessLookupError:
            pass

    async def ended(self) -> None:
        """Any number may wait. They share one descriptor: waiting must not fail for want of another."""
        if self._ended is None:
            loop = asyncio.get_running_loop()
            self._ended = loop.create_future()
            loop.add_reader(self._fd, self._note_end, loop, self._ended)
        await asyncio.shield(self._ended)

    def _note_end(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
        loop.remove_reader(self._fd)
        if not ended.done():
            ended.set_result(None)

    def close(self) -> None:
        if self._fd >= 0:
            if self._ended is not None:
                self._ended.get_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


def descriptors_left(pid: int) -> int | None:
    """How many more it may open. None: that cannot be told."""
    try:
        soft, _ = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        return soft - sum(1 for _ in os.scandir(PROC / str(pid) / "fd"))
    except OSError:
        return None


def memory_bytes(pid: int, proc: Path = PROC) -> int:
    """What a sentry takes: the guest's memory is a memfd of which only touched pages exist, the rest is anonymous."""
    total = _anonymous_bytes(proc / str(pid) / "status")
    folder = proc / str(pid) / "fd"
    try:
        for entry in folder.iterdir():
            if str(entry.readlink()).startswith("/memfd:runsc-memory"):
                return total + entry.stat().st_blocks * 512
    except OSError:
        pass  # it has just ended
    return total


def _anonymous_bytes(status: Path) -> int:
    try:
        for line in status.read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0
