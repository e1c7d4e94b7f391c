"""The agent: pid 1 of a sandbox. It moves records between the keeper and the interpreter child and never runs the user's code.

One thread, one loop over a handful of descriptors, no wait without an end but the one for the next event.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import AbstractContextManager, nullcontext

from ..wire.errors import ProtocolError
from ..wire.messages import PROTOCOL, Answer, Complete, Freeze, Go, GuestMessage, Hello, Interrupt, Kill, OpenDoor, Run, Setup
from . import channel, clerk, devices, etc, home, porch, processes
from .clerks import Clerks
from .freezer import Freezer
from .instructions import Instructions
from .limits import GuestLimits
from .link import GuestLink, LinkClosed
from .memory import MemoryGuard
from .outlet import Outlet
from .porch import Porch
from .supervisor import HANG_UP_SECONDS_MAX, Supervisor

EXIT_HOST_GONE = 0
EXIT_LINK_GARBAGE = 65


class Agent:
    def __init__(self, in_fd: int, out_fd: int) -> None:
        self.limits = GuestLimits()
        self.link = GuestLink(in_fd, out_fd, self._hello, self._attached)
        self.outlet = Outlet(self.link, self.limits)
        self.instructions = Instructions(self.link, self.outlet, self.limits)
        self.supervisor = Supervisor(self.link, self.outlet, self.instructions, lambda: self.freezer.thawed())
        self.freezer = Freezer(self.link, self.outlet, self.instructions, self.supervisor)
        self.clerks = Clerks(self.link, self._start_clerk)
        self.link.on_file = self.clerks.take
        self.porch = Porch(self.link, porch.door_fd())
        self.supervisor.on_reaped = self.porch.reaped
        self._memory = MemoryGuard()
        self._children_ended = False
        self._wake_fd = _watch_children()
        self._poller = select.poll()
        self._watched: tuple[object, ...] = ()
        self._sees_pipes = False
        self._deadline: float | None = None

    # --- the loop ------------------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Until the host is gone (LinkClosed) or has spoken nonsense (ProtocolError)."""
        devices.take_away()
        home.prepare()
        self.porch.begin()
        self.supervisor.start()
        while True:
            ready = self._poll()
            if self.freezer.standstill is None:
                self._look_at_memory()  # first: with many processes about, everything else may take long
            if self.link.in_fd in ready:
                for message in self.link.read():
                    self._obey(message)
            if self._wake_fd in ready:
                os.read(self._wake_fd, 4096)
                self._children_ended = True
            if self.link.unwritten:
                self.link.write()
            if self.clerks.busy and self.freezer.standstill is None:
                self.clerks.serve(ready)
            if self.freezer.standstill is None:
                self.porch.serve(ready)
                self._serve_user(ready)

    def _poll(self) -> list[int]:
        self._deadline = deadline = self._next_deadline()
        link, worker = self.link, self.supervisor.worker
        unsent = worker is not None and bool(worker.unsent)
        mid_print = self.outlet.mid_print if self.outlet.holds else None
        standstill, hung_up_at = self.freezer.standstill, self.supervisor.hung_up_at
        state = (worker, unsent, bool(link.unwritten), link.full, standstill, hung_up_at, mid_print, self.clerks.state, self.porch.state)
        if state != self._watched:  # it hardly ever changes, and describing it is cheaper than asking the kernel
            self._watched = state
            self._watch()
        milliseconds = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000 + 1
        return [fd for fd, _ in self._poller.poll(milliseconds)]

    def _watch(self) -> None:
        """A new list of descriptors. The kernel looks at them in this order, the channel before the pipes: so if a poll finds something to read in
        the channel and nothing in the pipes, whatever had been written there before it was sent has been read already."""
        wanted = self._wanted()
        self._poller = select.poll()
        for fd, events in wanted.items():
            self._poller.register(fd, events)
        worker = self.supervisor.worker
        self._sees_pipes = worker is not None and not worker.unsent and all(fd in wanted for fd in self.outlet.read_fds)

    def _wanted(self) -> dict[int, int]:
        """What the loop waits for. Not the user's output while the keeper is behind: then whoever writes it must wait too."""
        wanted = {self.link.in_fd: select.POLLIN, self._wake_fd: select.POLLIN}
        if self.link.unwritten:
            wanted[self.link.out_fd] = select.POLLOUT
        if self.freezer.standstill is not None:
            return wanted
        events = 0 if self.link.full else select.POLLIN
        worker = self.supervisor.worker
        if worker is not None and self.supervisor.hung_up_at is None and (events or worker.unsent):
            wanted[worker.fd] = events | (select.POLLOUT if worker.unsent else 0)
        if events:
            wanted.update(dict.fromkeys(self.outlet.readable_fds(time.monotonic()), events))
        wanted.update(self.clerks.wanted())
        wanted.update(self.porch.wanted())
        return wanted

    def _next_deadline(self) -> float | None:
        if self.freezer.standstill is not None:
            return None
        deadline = self._memory.next_look(self.instructions.running is not None)
        worker = self.supervisor.worker
        ring_awake = worker is not None and worker.ring.awake and not self.link.full
        supervisor = self.supervisor
        busy = ring_awake or self.outlet.holds or self.freezer.reseeding or supervisor.hung_up_at or supervisor.ready_by or supervisor.completing.busy
        if not busy and self.porch.deadline is None:
            return deadline
        deadlines = [deadline, self.porch.deadline, self.outlet.flush_silent(time.monotonic())]
        if ring_awake and worker is not None:
            deadlines.append(worker.ring.look_again)
        if self.freezer.reseeding is not None:
            deadlines.append(self.freezer.reseeding.deadline)
        deadlines += [supervisor.completing.deadline, supervisor.ready_by]
        if supervisor.hung_up_at is not None:
            deadlines.append(supervisor.hung_up_at + HANG_UP_SECONDS_MAX)
        return min(filter(None, deadlines), default=None)

    def _serve_user(self, ready: list[int]) -> None:
        worker = self.supervisor.worker
        if worker is not None and worker.unsent:
            worker.write()
        if not self.link.full:
            self._read_user(ready)
        if self._children_ended:
            self._children_ended = False
            self.supervisor.reap()
        if self._deadline is not None and (now := time.monotonic()) >= self._deadline:
            self._mind_deadlines(now)
        self._start_next()

    def _read_user(self, ready: list[int]) -> None:
        # Noted before the ring is read, so that what was printed first is told first.
        stdout_fd, stderr_fd = self.outlet.read_fds
        waiting = self.outlet.waiting() if stdout_fd in ready or stderr_fd in ready else None
        worker = self.supervisor.worker
        if worker is not None:
            if worker.ring.awake and time.monotonic() >= worker.ring.look_again:
                self.supervisor.look()
            elif worker.fd in ready or waiting:
                self.supervisor.hear(pipes_empty=waiting is None and self._sees_pipes)
        if waiting:
            self.outlet.read(waiting)

    def _mind_deadlines(self, now: float) -> None:
        self.supervisor.give_up_hung_up(now)
        self.supervisor.give_up_starting(now)
        self.freezer.give_up_reseeding(now)
        self.supervisor.completing.mind(now)
        self.porch.mind(now)

    def _look_at_memory(self) -> None:
        worker = self.supervisor.worker
        ended = self._memory.look(self.instructions.running is not None, worker.pid if worker else None)
        if ended is not None:
            self.supervisor.tell_killed(ended.pids, ended.why)

    def _quiet(self) -> AbstractContextManager[None]:
        return nullcontext() if self.freezer.standstill is not None else self._memory.quiet()

    def _start_next(self) -> None:
        if self.instructions.queue and self.instructions.running is None and not self.freezer.holds_back and not self.supervisor.completing.busy:
            now = time.monotonic()
            if self.supervisor.run_next(now):
                self._memory.put_off(now)

    # --- what the keeper says --------------------------------------------------------------------------------------------------------

    def _obey(self, message: GuestMessage) -> None:
        match message:
            case Run():
                self.instructions.accept(message)
                self.supervisor.completing.hurry()
                self._start_next()  # at once: what comes right behind it may be about it
            case Interrupt():
                with self._quiet():
                    self.supervisor.interrupt(message.instruction)
            case Kill():
                with self._quiet():
                    self.supervisor.kill(message.instruction)
            case Complete():
                self.supervisor.complete(message)
            case Answer():
                self.supervisor.answer(message)
            case Freeze():
                self.freezer.freeze(message.token)
            case Go():
                if message.entropy is not None:
                    self.clerks.drop_all()  # a copy of the machine that they were meant for
                self.freezer.go(message)
                self._children_ended = True  # some may have ended while we stood still
            case OpenDoor():
                self.porch.open(message.nonce, self.limits)
            case Setup():
                self._set_up(message)
            case _:
                raise ProtocolError(f"{type(message).__name__} is not for a guest")

    def _hello(self, epoch: int, sent: int, received: int) -> Hello:
        frozen, running = self.freezer.standstill is not None, self.instructions.running
        number, running_ms = None if running is None else running.instruction, self.instructions.running_ms
        last, calls = self.instructions.last, sorted(self.instructions.calls.open)
        return Hello(PROTOCOL, epoch, sent, received, frozen, number, running_ms, last, self.supervisor.interpreters, calls)

    def _attached(self, new_epoch: bool) -> None:
        self.porch.end()
        if new_epoch:
            running = self.instructions.running  # one that waits for an answer goes on in the new epoch
            self.instructions.last = None if running is None else running.instruction
        else:
            self.clerks.drop_all()  # another server: the one that wanted them is dead

    def _start_clerk(self, connection: socket.socket) -> None:
        folder = home.folder()  # asked here: in the clerk we are no longer pid 1
        processes.fork_clerk(lambda: clerk.serve(connection, folder), (connection.fileno(),), self.limits)

    def _set_up(self, setup: Setup) -> None:
        etc.write(setup.files)
        limits = self.limits = self.limits.changed(setup.limits)
        self.supervisor.env.update(setup.env)
        self.supervisor.limits = self.instructions.limits = limits
        self.outlet.limit(limits)
        self._memory.memory_mb = limits.memory_mb
        worker = self.supervisor.worker
        if worker is not None:
            worker.limit(limits)
            self.supervisor.order(channel.SETUP, json.dumps({"env": setup.env, "limits": dataclasses.asdict(limits)}).encode())


def _watch_children() -> int:
    """A descriptor that can be read when some child has ended."""
    r, w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(w, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return r


def _private(fd: int) -> int:
    """A copy out of the way of 0, 1 and 2, which no child of ours inherits; the original becomes /dev/null."""
    moved = processes.private_copy(fd)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)
    os.set_blocking(moved, False)
    return moved


def main() -> None:
    processes.adopt_orphans()
    agent = Agent(_private(0), _private(1))
    code = EXIT_HOST_GONE
    try:
        agent.serve()
    except LinkClosed:
        pass
    except ProtocolError:
        code = EXIT_LINK_GARBAGE
    processes.kill_all(processes.user_processes())
    sys.stdout = sys.stderr = None
    os._exit(code)
