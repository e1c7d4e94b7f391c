"""The agent: pid 1 of a sandbox. It moves records between the keeper and the interpreter child and never runs the user's code.

One thread, one loop over a handful of descriptors, no wait without an end but the one for the next event.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections import deque
from typing import NamedTuple

from ..wire.errors import ProtocolError
from ..wire.messages import PROTOCOL, Display, End, Freeze, Frozen, Go, GuestMessage, Hello, Interrupt, Kill, Run, Setup, Thawed, decode_from_guest
from . import channel, home, processes
from .channel import Frame
from .limits import GuestLimits
from .link import GuestLink, LinkClosed
from .memory import MemoryGuard
from .outlet import Outlet
from .processes import Standstill
from .worker import Worker, describe_exit

QUEUE_MAX = 16  # the keeper sends one at a time; more is its mistake
RESEED_SECONDS_MAX = 1.0
HANG_UP_SECONDS_MAX = 0.5  # between the end of the interpreter's channel and its death
STARTS_MAX = 2  # tries in a row before an instruction is told that no interpreter can be had
EXIT_HOST_GONE = 0
EXIT_LINK_GARBAGE = 65
NEW_INTERPRETER = "a new interpreter began: variables, imports and threads of the one before are gone, files are not"


class Reseeding(NamedTuple):
    deadline: float
    drift_ns: int


class Agent:
    def __init__(self, in_fd: int, out_fd: int) -> None:
        self.limits = GuestLimits()
        self.env = home.environment()
        self.link = GuestLink(in_fd, out_fd, self._hello, self._new_epoch)
        self.outlet = Outlet(self.link, self.limits)
        self.queue: deque[Run] = deque()
        self.running: Run | None = None
        self.running_since = 0.0
        self.running_since_ticks = 0
        self.last: int | None = None
        self.interpreters = 0
        self.worker: Worker | None = None
        self.standstill: Standstill | None = None
        self.reseeding: Reseeding | None = None
        self._memory = MemoryGuard()
        self._notes: list[str] = []
        self._cause_of_death: str | None = None
        self._failed_starts = 0
        self._hung_up_at: float | None = None
        self._children_ended = False
        self._wake_fd = self._watch_children()
        self._poller = select.poll()
        self._watched: dict[int, int] = {}
        self._watch_state: tuple[object, ...] = ()

    # --- the loop ------------------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Until the host is gone (LinkClosed) or has spoken nonsense (ProtocolError)."""
        home.prepare()
        self._spawn()
        while True:
            ready = self._poll()
            if self.link.in_fd in ready:
                for message in self.link.read():
                    self._obey(message)
            if self._wake_fd in ready:
                os.read(self._wake_fd, 4096)
                self._children_ended = True
            self.link.write()
            if self.standstill is None:
                self._serve_user(ready)

    def _poll(self) -> set[int]:
        now = time.monotonic()
        seconds = self._seconds_to_wait(now)
        worker = self.worker
        state = (self.link.wants_to_write, self.link.full, self.standstill, worker, worker is not None and worker.wants_to_write, self._hung_up_at)
        state += (self.outlet.mid_print,)
        if state != self._watch_state:  # it hardly ever changes, and describing it is cheaper than asking the kernel
            self._watch_state = state
            self._watch(self._wanted(now))
        return {fd for fd, _ in self._poller.poll(None if seconds is None else seconds * 1000 + 1)}

    def _watch(self, wanted: dict[int, int]) -> None:
        for fd in self._watched.keys() - wanted.keys():
            self._poller.unregister(fd)
        for fd, events in wanted.items():
            self._poller.register(fd, events)
        self._watched = wanted

    def _wanted(self, now: float) -> dict[int, int]:
        """What the loop waits for. Not the user's output while the keeper is behind: then whoever writes it must wait too."""
        wanted = {self.link.in_fd: select.POLLIN, self._wake_fd: select.POLLIN}
        if self.link.wants_to_write:
            wanted[self.link.out_fd] = select.POLLOUT
        if self.standstill is not None:
            return wanted
        events = 0 if self.link.full else select.POLLIN
        if events:
            wanted.update(dict.fromkeys(self.outlet.readable_fds(now), events))
        if self.worker is not None:
            if self.worker.wants_to_write:
                events |= select.POLLOUT
            if events and self._hung_up_at is None:
                wanted[self.worker.fd] = events
        return wanted

    def _seconds_to_wait(self, now: float) -> float | None:
        if self.standstill is not None:
            return None
        deadlines = [self.outlet.flush_silent(now), self._memory.next_look(self.running is not None)]
        if self.reseeding is not None:
            deadlines.append(self.reseeding.deadline)
        if self.worker is not None and self.worker.ring.awake and not self.link.full:
            deadlines.append(self.worker.ring.look_again)
        if self._hung_up_at is not None:
            deadlines.append(self._hung_up_at + HANG_UP_SECONDS_MAX)
        soonest = min(filter(None, deadlines), default=None)
        return None if soonest is None else max(0.0, soonest - now)

    def _serve_user(self, ready: set[int]) -> None:
        worker = self.worker
        if worker is not None and worker.wants_to_write:
            worker.write()
        if not self.link.full:
            self._read_user(worker, ready)
        if self._children_ended:
            self._children_ended = False
            self._reap()
        self._mind_deadlines(time.monotonic())
        self._start_next()

    def _read_user(self, worker: Worker | None, ready: set[int]) -> None:
        # Noted before the ring is read, so that what was printed first is told first.
        waiting = None if ready.isdisjoint(self.outlet.read_fds) else self.outlet.waiting()
        if worker is not None:
            if worker.ring.awake and time.monotonic() >= worker.ring.look_again:
                self._look(worker)
            elif worker.fd in ready or waiting:
                self._hear(worker)
        if waiting:
            self.outlet.read(waiting)

    def _mind_deadlines(self, now: float) -> None:
        if self._memory.memory_mb:
            self._guard_memory(now)
        if self._hung_up_at is not None and self.worker is not None and now >= self._hung_up_at + HANG_UP_SECONDS_MAX:
            self._condemn(self.worker, "it closed its connection to the agent")
        if self.reseeding is not None and now >= self.reseeding.deadline:
            self._thawed()

    # --- what the keeper says --------------------------------------------------------------------------------------------------------

    def _obey(self, message: GuestMessage) -> None:
        match message:
            case Run():
                self._accept(message)
            case Interrupt():
                if self.worker is not None and self.running is not None and self.running.instruction == message.instruction:
                    self.worker.interrupt(self.running_since_ticks)
            case Kill():
                self._kill(message.instruction)
            case Freeze():
                self._freeze(message.token)
            case Go():
                self._go(message)
            case Setup():
                self._set_up(message)
            case _:
                raise ProtocolError(f"{type(message).__name__} is not for a guest")

    def _hello(self, epoch: int, sent: int, received: int) -> Hello:
        running, running_ms = None, 0
        if self.running is not None:
            running, running_ms = self.running.instruction, int((time.monotonic() - self.running_since) * 1000)
        return Hello(PROTOCOL, epoch, sent, received, self.standstill is not None, running, running_ms, self.last, self.interpreters)

    def _new_epoch(self) -> None:
        self.last = None

    def _set_up(self, setup: Setup) -> None:
        self.env.update(setup.env)
        self.limits = self.limits.changed(setup.limits)
        self.outlet.limit(self.limits)
        self._memory.memory_mb = self.limits.memory_mb
        if self.worker is not None:
            self.worker.limit(self.limits)
            self.worker.order(channel.SETUP, json.dumps({"env": setup.env, "limits": dataclasses.asdict(self.limits)}).encode())

    # --- instructions ----------------------------------------------------------------------------------------------------------------

    def _accept(self, run: Run) -> None:
        if self.last is not None and run.instruction <= self.last:
            return  # sent again after a reconnect
        self.last = run.instruction
        if len(self.queue) >= QUEUE_MAX:
            self.link.send(End(run.instruction, "error", 0, error_name="QueueFull", error_message=f"{QUEUE_MAX} instructions wait already"))
            return
        self.queue.append(run)
        self._start_next()

    def _start_next(self) -> None:
        if self.running is not None or not self.queue or self.standstill is not None or self.reseeding is not None:
            return
        if self.worker is None:
            self._spawn()
        worker = self.worker
        if worker is None or not worker.ready:
            return
        self.running = self.queue.popleft()
        self.running_since = time.monotonic()
        self.running_since_ticks = processes.clock_ticks()
        self.outlet.begin(self.running.instruction)
        worker.order(channel.RUN, f"{self.running.instruction}\n{self.running.code}".encode("utf-8", "replace"))

    def _kill(self, instruction: int) -> None:
        if self.worker is None or self.running is None or self.running.instruction != instruction:
            return
        self._cause_of_death = "it was killed because the instruction did not end when it was interrupted"
        self.worker.kill()

    def _end(self, end: End, body: bytes | None = None) -> None:
        """The one end of the running instruction, with what only the agent knows put in. `body` is the message as it came, if nothing changed."""
        self.outlet.flush()
        notes = [end.note] if end.note else []
        dropped = self.outlet.dropped_bytes
        if dropped:
            notes.append(f"{dropped} bytes of output past the limit of {self.limits.output_bytes_max} were dropped")
        if between := self.outlet.dropped_between_bytes:
            notes.append(f"{between} bytes of output between instructions were dropped")
        notes += self._notes
        self._notes = []
        if body is None or dropped or notes != ([end.note] if end.note else []):
            self.link.send(dataclasses.replace(end, note="; ".join(notes) or None, dropped_bytes=dropped))
        else:
            self.link.send_encoded(End.kind, body)
        self.running = None
        self.outlet.end()

    # --- what the interpreter says -----------------------------------------------------------------------------------------------------

    def _hear(self, worker: Worker) -> bool:
        """What has come from it; True when that was anything."""
        try:
            heard, is_open = worker.hear()
            for frame in heard:
                self._take(worker, frame)
            said = self._listen(worker)
        except ProtocolError as e:
            self._condemn(worker, f"it broke the protocol with the agent ({e.message})")
            return False
        if not is_open and self._hung_up_at is None:
            self._hung_up_at = time.monotonic()  # most likely it is just dying, and its exit status will say how
        return said or bool(heard)

    def _listen(self, worker: Worker, upto: int | None = None) -> bool:
        """What it has printed."""
        said = worker.ring.read(upto)
        for one in said:
            origin = one.origin if self.last is not None and 0 <= one.origin <= self.last else None
            self.outlet.take(one, origin)
        return bool(said)

    def _look(self, worker: Worker) -> None:
        """After a poke the ring is looked at every few milliseconds, until a look finds nothing."""
        found = self._hear(worker)
        if self.worker is not worker:
            return  # what it said was its end
        if not found:
            worker.ring.doze()
        if found or not worker.ring.empty:
            worker.ring.wake()

    def _condemn(self, worker: Worker, cause: str) -> None:
        """Nothing it says counts any more. Its end is told when it is dead."""
        self._cause_of_death = self._cause_of_death or cause
        worker.kill()
        self._bury(worker, None)

    def _take(self, worker: Worker, frame: Frame) -> None:
        if frame.kind == channel.POKE:
            worker.ring.wake()
        elif frame.kind == channel.END:
            self._take_end(self._in_place(worker, frame))
        elif frame.kind == channel.DISPLAY:
            self._take_display(self._in_place(worker, frame))
        elif frame.kind == channel.READY:
            worker.ready = True
            self._failed_starts = 0
        elif frame.kind == channel.RESEEDED:
            self._thawed()
        else:
            raise ProtocolError(f"there is no frame of kind {frame.kind}")

    def _in_place(self, worker: Worker, frame: Frame) -> bytes:
        """Tells what was printed before the frame, and gives its body."""
        if len(frame.body) < channel.POSITION.size:
            raise ProtocolError("a frame has no position")
        self._listen(worker, channel.POSITION.unpack_from(frame.body)[0])
        return frame.body[channel.POSITION.size :]

    def _take_end(self, body: bytes) -> None:
        end = decode_from_guest(End.kind, body)
        if not isinstance(end, End) or self.running is None or end.instruction != self.running.instruction or end.end == "died":
            raise ProtocolError("an end came for an instruction that does not run")
        self._end(end, body)

    def _take_display(self, body: bytes) -> None:
        display = decode_from_guest(Display.kind, body)
        if isinstance(display, Display) and self.outlet.allow_whole(len(body)):
            self.outlet.flush()
            self.link.send(dataclasses.replace(display, instruction=self.outlet.instruction))

    # --- life and death of the interpreter ---------------------------------------------------------------------------------------------

    def _spawn(self) -> None:
        user_site = self._failed_starts == 0  # a package in the user's folder may be what keeps it from starting
        try:
            self.worker = Worker(self.env, home.folder(), self.outlet.write_fds, self.limits, user_site)
        except OSError as e:  # no process, no memory, no descriptor to be had
            self._after_failed_start(str(e))
        else:
            self.interpreters += 1

    def _watch_children(self) -> int:
        r, w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        return r

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.worker is not None and pid == self.worker.pid:
                self._bury(self.worker, status)

    def _bury(self, worker: Worker, status: int | None) -> None:
        """The interpreter is dead (or as good as): everything it said is told first, then its end, then there is a new one."""
        self._hear_last_words(worker, status is not None)
        cause = self._cause_of_death or (describe_exit(status) if status is not None else "it was killed")
        self._cause_of_death = None
        started = worker.ready
        worker.kill()
        worker.close()
        self.worker = None
        self._hung_up_at = None
        self.outlet.flush()
        self.outlet.read(self.outlet.waiting())
        if self.reseeding is not None:
            self._thawed()
        if started:
            self._after_life(cause)
        else:
            self._after_failed_start(cause)

    def _hear_last_words(self, worker: Worker, trusted: bool) -> None:
        """What it printed counts in any case; its frames only if nothing was wrong with them."""
        try:
            while trusted and not self.link.full:
                heard, is_open = worker.hear()
                for frame in heard:
                    self._take(worker, frame)
                if not heard or not is_open:
                    break
            self._listen(worker)
        except ProtocolError:
            return

    def _after_life(self, cause: str) -> None:
        if self.running is not None:
            message = f"the interpreter died: {cause}"
            self._end(End(self.running.instruction, "died", 0, error_name="InterpreterDied", error_message=message))
        self._notes.append(NEW_INTERPRETER)
        self._spawn()

    def _after_failed_start(self, cause: str) -> None:
        self._failed_starts += 1
        if self._failed_starts < STARTS_MAX:
            # What the user has left running may be what takes all the processes or memory there are.
            processes.kill_all(processes.user_processes())
            self._notes.append("every process was ended, because no interpreter could be started beside them")
            self._spawn()
        elif self.queue:
            self.running = self.queue.popleft()
            self.outlet.begin(self.running.instruction)
            message = f"no interpreter could be started: {cause}"
            self._end(End(self.running.instruction, "died", 0, error_name="InterpreterDied", error_message=message))

    def _guard_memory(self, now: float) -> None:
        killed = self._memory.look(now, self.running is not None, self.worker.pid if self.worker else None)
        if killed is None:
            return
        process, why = killed
        if self.worker is not None and process.pid == self.worker.pid:
            self._cause_of_death = why
        else:
            self._notes.append(why)

    # --- standstill ------------------------------------------------------------------------------------------------------------------

    def _freeze(self, token: int) -> None:
        if self.standstill is None:
            standstill = Standstill()
            if not standstill.begin():
                standstill.end()
                return  # no answer is the honest one: something of the user's still moves
            waiting = self.outlet.waiting()
            if self.worker is not None:
                self._hear(self.worker)
            self.outlet.flush()
            self.outlet.read(waiting)
            self.outlet.flush()
            self.standstill = standstill
        self.link.send(Frozen(token))

    def _go(self, go: Go) -> None:
        drift_ns = time.time_ns() - go.time_ns
        if go.entropy is not None and self.worker is not None and self.worker.ready:
            # Ordered before anything of the user's runs; told as thawed when the interpreter has done it.
            self.worker.order(channel.ENTROPY, _from_hex(go.entropy))
            self.reseeding = Reseeding(time.monotonic() + RESEED_SECONDS_MAX, drift_ns)
        if self.standstill is not None:
            self.standstill.end()
            self.standstill = None
        if self.reseeding is None:
            self.link.send(Thawed(drift_ns))
        elif self.running is not None and self.worker is not None:
            processes.send_signal(self.worker.pid, channel.ORDERS_SIGNAL)
        self._children_ended = True  # some may have ended while we stood still

    def _thawed(self) -> None:
        if self.reseeding is not None:
            self.link.send(Thawed(self.reseeding.drift_ns))
            self.reseeding = None


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as e:
        raise ProtocolError("entropy is not hexadecimal") from e


def private(fd: int) -> int:
    """A copy out of the way of 0, 1 and 2, which no child of ours inherits; the original becomes /dev/null."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, processes.FIRST_PRIVATE_FD)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)
    os.set_blocking(moved, False)
    return moved


def main() -> None:
    processes.adopt_orphans()
    agent = Agent(private(0), private(1))
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
