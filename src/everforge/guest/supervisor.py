"""The interpreter's life, seen from outside: it is started, given instructions and heard; when it dies that is told, and a new one begins."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from ..wire.errors import ProtocolError
from ..wire.messages import Answer, Complete
from . import channel, home, processes
from .channel import Frame
from .completing import Completing
from .instructions import Instructions
from .limits import GuestLimits
from .link import GuestLink
from .outlet import Outlet
from .worker import Worker, describe_exit

START_SECONDS_MAX = 60.0  # from its start until it is ready: after that it is taken for one that never will be
HANG_UP_SECONDS_MAX = 0.5  # between the end of the interpreter's channel and its death
UNSEEDED_BYTES_MAX = 200  # of the names of generators that could not be seeded
STARTS_MAX = 2  # tries in a row before an instruction is told that no interpreter can be had
NEW_INTERPRETER = "a new interpreter began: variables, imports and threads of the one before are gone, files are not"


class Supervisor:
    """`on_reseeded` is called when the interpreter has taken fresh entropy, or is dead: a new one seeds itself."""

    def __init__(self, link: GuestLink, outlet: Outlet, instructions: Instructions, on_reseeded: Callable[[], None]) -> None:
        self.env = home.environment()
        self.limits = GuestLimits()
        self.worker: Worker | None = None
        self.interpreters = 0
        self.hung_up_at: float | None = None
        self.ready_by: float | None = None  # while it starts
        self._link = link
        self._outlet = outlet
        self._instructions = instructions
        self._on_reseeded = on_reseeded
        self.on_reaped: Callable[[int], None] = lambda _: None
        self._cause_of_death: str | None = None
        self._failed_starts = 0
        self.completing = Completing(link)

    # --- beginning -------------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        user_site = self._failed_starts == 0  # a package in the user's folder may be what keeps it from starting
        try:
            self.worker = Worker(self.env, home.folder(), self._outlet.write_fds, self.limits, user_site)
        except OSError as e:  # no process, no memory, no descriptor to be had
            self._after_failed_start(str(e))
        else:
            self.interpreters += 1
            self.wait_for_start()

    def wait_for_start(self) -> None:
        """From now on; also after a sleep, which is no time of its own."""
        if self.worker is not None and not self.worker.ready:
            self.ready_by = time.monotonic() + START_SECONDS_MAX

    def give_up_starting(self, now: float) -> None:
        if self.worker is not None and self.ready_by is not None and now >= self.ready_by:
            self._condemn(self.worker, f"it was not ready within {START_SECONDS_MAX:g} s")

    def run_next(self, now: float) -> bool:
        """The queue's first instruction begins; False when there is no interpreter for it yet."""
        if self.worker is None:
            self.start()
        worker = self.worker
        if worker is None or not worker.ready:
            return False
        run = self._instructions.begin(now)
        head = b"%d" % run.instruction
        if run.env or run.functions:
            head = json.dumps({"instruction": run.instruction, "env": run.env, "functions": run.functions}).encode()
        self.order(channel.RUN, b"%s\n%s" % (head, run.code.encode("utf-8", "replace")))
        return True

    def order(self, kind: int, body: bytes) -> None:
        """To the interpreter, if there is one; one that does not take what it is told is ended."""
        worker = self.worker
        if worker is not None:
            try:
                worker.order(kind, body)
            except ProtocolError as e:
                self._condemn(worker, e.message)

    def complete(self, message: Complete) -> None:
        """By an interpreter that has nothing else to do."""
        idle = self.worker is not None and self.worker.ready and self._instructions.running is None and not self._instructions.queue
        self.completing.begin(message, self.worker if idle else None)

    def answer(self, answer: Answer) -> None:
        """To a call that the code still waits for."""
        if self._instructions.calls.answer(answer):
            self.order(channel.ANSWER, json.dumps({"call": answer.call, "value": answer.value, "error": answer.error}).encode("ascii"))

    # --- what it says ----------------------------------------------------------------------------------------------------------------

    def hear(self, *, pipes_empty: bool = False) -> bool:
        """What has come from it; True when that was anything. `pipes_empty`: a poll has just seen that the channel had something and they had not."""
        worker = self.worker
        if worker is None:
            return False
        try:
            heard, is_open = worker.hear()
            for frame in heard:
                self._take(worker, frame, pipes_empty)
                pipes_empty = False  # the poll was before this frame, and perhaps before what was written ahead of the next
            said = self._listen(worker)
        except ProtocolError as e:
            self._condemn(worker, f"it broke the protocol with the agent ({e.message})")
            return False
        if not is_open and self.hung_up_at is None:
            self.hung_up_at = time.monotonic()  # most likely it is just dying, and its exit status will say how
        return said or bool(heard)

    def look(self) -> None:
        """After a poke the ring is looked at every few milliseconds, until a look finds nothing."""
        worker = self.worker
        found = self.hear()
        if worker is None or self.worker is not worker:
            return  # what it said was its end
        if not found:
            worker.ring.doze()
        if found or not worker.ring.empty:
            worker.ring.wake()

    def _listen(self, worker: Worker, upto: int | None = None) -> bool:
        """What it has printed."""
        said = worker.ring.read(upto)
        if not said:
            return False
        last = self._instructions.last
        with self._link.together():
            for one in said:
                origin = one.origin if last is not None and 0 <= one.origin <= last else None
                self._outlet.take(one, origin)
        return True

    def _take(self, worker: Worker, frame: Frame, pipes_empty: bool) -> None:
        if frame.kind == channel.END:
            body = self._in_place(worker, frame)
            if not pipes_empty:
                self._outlet.read_all()  # what its programs wrote before the end belongs before it
            self._instructions.take_end(body)
        elif frame.kind == channel.POKE:
            worker.ring.wake()
        elif frame.kind == channel.DISPLAY:
            self._instructions.take_display(self._in_place(worker, frame))
        elif frame.kind == channel.CALL:
            self._instructions.calls.take(self._in_place(worker, frame))
        elif frame.kind == channel.CALL_DROPPED:
            self._instructions.calls.drop(self._in_place(worker, frame))
        elif frame.kind == channel.READY:
            worker.ready = True
            self.ready_by = None
            self._failed_starts = 0
        elif frame.kind == channel.COMPLETED:
            self.completing.take(frame.body)
        elif frame.kind == channel.RESEEDED:
            if frame.body:
                failed = frame.body[:UNSEEDED_BYTES_MAX].decode("utf-8", "replace")
                self._instructions.note(f"random numbers may be those of another copy of this machine: {failed} could not be seeded anew")
            self._on_reseeded()
        else:
            raise ProtocolError(f"there is no frame of kind {frame.kind}")

    def _in_place(self, worker: Worker, frame: Frame) -> bytes:
        """Tells what was printed before the frame, and gives its body."""
        if len(frame.body) < channel.POSITION.size:
            raise ProtocolError("a frame has no position")
        self._listen(worker, channel.POSITION.unpack_from(frame.body)[0])
        return frame.body[channel.POSITION.size :]

    # --- its end ---------------------------------------------------------------------------------------------------------------------

    def interrupt(self, instruction: int) -> None:
        if self._instructions.withdraw(instruction):
            return
        running = self._instructions.running
        if self.worker is not None and running is not None and running.instruction == instruction:
            self.worker.interrupt(self._instructions.since_ticks)

    def kill(self, instruction: int) -> None:
        if self._instructions.withdraw(instruction):
            return
        running = self._instructions.running
        if self.worker is not None and running is not None and running.instruction == instruction:
            self._cause_of_death = "it was killed because the instruction did not end when it was interrupted"
            self.worker.kill()

    def tell_killed(self, pids: list[int], why: str) -> None:
        """Of processes that were killed to save the others: the interpreter itself, or some that it had started."""
        if self.worker is not None and self.worker.pid in pids:
            self._cause_of_death = why
        else:
            self._instructions.note(why)

    def give_up_hung_up(self, now: float) -> None:
        if self.hung_up_at is not None and self.worker is not None and now >= self.hung_up_at + HANG_UP_SECONDS_MAX:
            self._condemn(self.worker, "it closed its connection to the agent")

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.worker is not None and pid == self.worker.pid:
                self._bury(self.worker, status)
            else:
                self.on_reaped(pid)

    def _condemn(self, worker: Worker, cause: str) -> None:
        """Nothing it says counts any more. Its end is told when it is dead."""
        self._cause_of_death = self._cause_of_death or cause
        worker.kill()
        self._bury(worker, None)

    def _bury(self, worker: Worker, status: int | None) -> None:
        """The interpreter is dead (or as good as): everything it said is told first, then its end, then there is a new one."""
        self._hear_last_words(worker, status is not None)
        cause = self._cause_of_death or (describe_exit(status) if status is not None else "it was killed")
        self._cause_of_death = None
        worker.kill()
        worker.close()
        self.worker = None
        self.hung_up_at = self.ready_by = None
        self._outlet.flush()
        self._outlet.read(self._outlet.waiting())
        self._on_reseeded()
        self.completing.end()
        if worker.ready:
            self._instructions.fail(f"the interpreter died: {cause}")
            self._instructions.note(NEW_INTERPRETER)
            self.start()
        else:
            self._after_failed_start(cause)

    def _hear_last_words(self, worker: Worker, trusted: bool) -> None:
        """What it printed counts in any case; its frames only if nothing was wrong with them."""
        try:
            while trusted and not self._link.full:
                heard, is_open = worker.hear()
                for frame in heard:
                    self._take(worker, frame, False)
                if not heard or not is_open:
                    break
            self._listen(worker)
        except ProtocolError:
            return

    def _after_failed_start(self, cause: str) -> None:
        self._failed_starts += 1
        if self._failed_starts < STARTS_MAX:
            # What the user has left running may be what takes all the processes or memory there are.
            processes.end_all(lambda _: True)
            self._instructions.note("every process was ended, because no interpreter could be started beside them")
            self.start()
        elif self._instructions.queue:
            self._instructions.begin(time.monotonic())
            self._instructions.fail(f"no interpreter could be started: {cause}")
