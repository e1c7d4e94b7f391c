"""Standing still for a save, and going on afterwards, with fresh entropy where the machine is a copy."""

from __future__ import annotations

import time
from typing import NamedTuple

from ..wire.errors import ProtocolError
from ..wire.messages import CannotFreeze, Frozen, Go, Thawed
from . import channel, processes
from .instructions import Instructions
from .link import GuestLink
from .outlet import Outlet
from .processes import Process, Standstill
from .supervisor import Supervisor

TELL_SECONDS_MAX = 1.0  # for what was said before everything stood still; what is left by then is told after the sleep
RESEED_SECONDS_MAX = 1.0  # then `thawed` says that it is still to be done: the order stays ahead of every instruction in the channel


class Reseeding(NamedTuple):
    deadline: float
    drift_ns: int


class Freezer:
    def __init__(self, link: GuestLink, outlet: Outlet, instructions: Instructions, supervisor: Supervisor) -> None:
        self.standstill: Standstill | None = None
        self.reseeding: Reseeding | None = None
        self._link = link
        self._outlet = outlet
        self._instructions = instructions
        self._supervisor = supervisor

    @property
    def holds_back(self) -> bool:
        """No instruction may begin."""
        return self.standstill is not None or self.reseeding is not None

    def freeze(self, token: int) -> None:
        if self.standstill is None:
            standstill = Standstill()
            if moving := standstill.begin():
                standstill.end()
                self._link.send(CannotFreeze(token, _describe(moving)))
                return
            self._tell_everything()
            self.standstill = standstill
        self._link.send(Frozen(token))

    def _tell_everything(self) -> None:
        waiting = self._outlet.waiting()
        until = time.monotonic() + TELL_SECONDS_MAX  # nothing moves, as a rule, so that this ends
        while self._supervisor.hear() and not self._link.full and time.monotonic() < until:
            pass
        self._outlet.flush()
        self._outlet.read(waiting)
        self._outlet.flush()

    def go(self, go: Go) -> None:
        drift_ns = time.time_ns() - go.time_ns
        worker = self._supervisor.worker
        if go.entropy is not None and worker is not None:
            # Ordered before anything of the user's runs, also to one that is only starting; told as thawed when the interpreter has done it. One
            # that comes after it seeds itself.
            self._supervisor.order(channel.ENTROPY, _from_hex(go.entropy))
            if self._supervisor.worker is worker:
                self.reseeding = Reseeding(time.monotonic() + RESEED_SECONDS_MAX, drift_ns)
        if self.standstill is not None:
            self.standstill.end()
            self.standstill = None
            self._supervisor.wait_for_start()
        if self.reseeding is None:
            self._link.send(Thawed(drift_ns))
        elif self._instructions.running is not None and worker is not None:
            processes.send_signal(worker.pid, channel.ORDERS_SIGNAL)

    def give_up_reseeding(self, now: float) -> None:
        """Of waiting only: the interpreter is in the middle of something, and finds the order before the next instruction."""
        if self.reseeding is not None and now >= self.reseeding.deadline:
            self.thawed(reseeded=False)

    def thawed(self, *, reseeded: bool = True) -> None:
        """The interpreter has its entropy, or is a new one that seeded itself."""
        if self.reseeding is not None:
            self._link.send(Thawed(self.reseeding.drift_ns, reseeded))
            self.reseeding = None


def _describe(moving: list[Process]) -> str:
    first, others = moving[0], len(moving) - 1
    beside = f", and {others} more" if others else ""
    state = processes.STATES.get(first.state, f"in state {first.state}")
    return f"process {first.pid} ({first.name}) could not be stopped: it is {state}{beside}"


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as e:
        raise ProtocolError("entropy is not hexadecimal") from e
