"""One sandbox as a warden holds it: its host ends, its processes, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import ExitStack
from dataclasses import dataclass, field
from fcntl import F_SETPIPE_SZ, fcntl  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any, Literal

from .commands import Runsc
from .processes import Process

PIPE_BYTES = 1024 * 1024  # the most that an ordinary user may ask for; a guest that prints need not wait for every read
WORDS_BYTES = 4096

State = Literal["starting", "created", "running", "ended"]


@dataclass(slots=True)
class Stdio:
    """Host ends: bytes to the guest, bytes from it, and the socket of its egress door."""

    to_guest: int
    from_guest: int
    egress: int

    @property
    def all(self) -> tuple[int, int, int]:
        return (self.to_guest, self.from_guest, self.egress)

    def close(self) -> None:
        for number in self.all:
            os.close(number)

    def last_words(self) -> str:
        """What a guest that failed wrote to its descriptor 2: a traceback ends there."""
        try:
            data = os.read(self.egress, WORDS_BYTES)
        except OSError:
            return ""
        lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
        return "".join(c for c in lines[-1] if c.isprintable())[:300] if lines else ""


def new_stdio() -> tuple[Stdio, tuple[int, int, int]]:
    """Host ends and guest ends. Two pipes and a socket pair: a single pair for both directions loses writes to EAGAIN."""
    with ExitStack() as opened:  # all of them or none: the next one may be one too many
        guest_in, to_guest = _pipe(opened)
        from_guest, guest_out = _pipe(opened)
        ours, theirs = socket.socketpair()
        opened.pop_all()
    try:
        fcntl(from_guest, F_SETPIPE_SZ, PIPE_BYTES)  # pyright: ignore[reportUnknownArgumentType]
    except OSError:
        pass  # over the user's share of pipe memory: then it is a small one
    ours.setblocking(False)
    return Stdio(to_guest, from_guest, ours.detach()), (guest_in, guest_out, theirs.detach())


def _pipe(opened: ExitStack) -> tuple[int, int]:
    pipe = os.pipe()
    for number in pipe:
        opened.callback(os.close, number)
    return pipe


@dataclass(slots=True)
class Held:
    id: str
    engine: str  # digest of its runsc
    runsc: Runsc
    stdio: Stdio
    memory_mb: int
    pooled: bool
    state: State = "starting"
    doomed: bool = False  # destroy was asked
    over_memory: bool = False  # the watch killed it
    seen_kills: int = 0  # by the kernel, for want of memory, as of the last look
    survived_kills: int = 0  # as of the look before: mostly it is the greedy one of the guest's processes that the kernel ends
    sentry: Process | None = None
    gofer: Process | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # one command at a time
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # no trace of it is left
    watcher: asyncio.Task[None] | None = None

    @property
    def processes(self) -> list[Process]:
        return [p for p in (self.sentry, self.gofer) if p is not None]

    def note_memory_kills(self, count: int) -> None:
        """Looked at now and then. What it has outlived from one look to the next is not what it dies of later; but a killed sandbox of a gigabyte
        takes a second to die, and a look in that second must not make its death another's."""
        self.survived_kills, self.seen_kills = self.seen_kills, count

    def is_out_of_memory(self, memory_kills: int) -> bool:
        return self.over_memory or memory_kills > self.survived_kills

    def describe(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "engine": self.engine,
            "state": self.state,
            "pooled": self.pooled,
            "memory_mb": self.memory_mb,
            "pids": [p.pid for p in self.processes],
        }


def how_it_ended(status: int | None) -> tuple[str, str]:
    """Words of engine.base.How, from the sentry's wait status; None when it was not our child."""
    if status is None:
        return "lost", "it ended under a warden that had not started it, so how is not known"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return "killed", f"by {signal.Signals(-code).name}"
    return "exited", f"status {code}"
