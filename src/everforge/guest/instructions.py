"""The instructions: those that wait, the one that runs, and its one end."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Iterator

from ..wire.errors import ProtocolError
from ..wire.messages import Display, End, Run, decode_from_interpreter, encode
from . import processes, shortcuts
from .calls import Calls
from .limits import GuestLimits
from .link import GuestLink
from .outlet import Outlet

NOTES_MAX = 8
QUEUE_MAX = 16  # the keeper sends one at a time; more is its mistake


class Instructions:
    def __init__(self, link: GuestLink, outlet: Outlet, limits: GuestLimits) -> None:
        self.limits = limits
        self.queue: deque[Run] = deque()
        self.running: Run | None = None
        self.last: int | None = None  # of those taken in this epoch
        self._link = link
        self._outlet = outlet
        self._since = 0.0
        self._notes: list[str] = []
        self.calls = Calls(link, outlet)

    @property
    def running_ms(self) -> int:
        """For how long the running one has run; what it waited for answers does not count."""
        return 0 if self.running is None else int((time.monotonic() - self._since - self.calls.waited_seconds) * 1000)

    @property
    def since_ticks(self) -> int:
        """When the running one began, in the unit of `Process.started`."""
        return processes.ticks_at(self._since)

    # --- beginnings ------------------------------------------------------------------------------------------------------------------

    def accept(self, run: Run) -> None:
        if self.last is not None and run.instruction <= self.last:
            return  # sent again after a reconnect
        self.last = run.instruction
        if len(self.queue) >= QUEUE_MAX:
            message = f"{QUEUE_MAX} instructions wait already"
            self._link.send(End(run.instruction, "error", 0, error_name="QueueFull", error_message=message))
            return
        self.queue.append(run)

    def begin(self, now: float) -> Run:
        """The next one of the queue runs from now on."""
        run = self.running = self.queue.popleft()
        self._since = now
        self._outlet.begin(run.instruction)
        self.calls.begin(run)
        return run

    def withdraw(self, instruction: int) -> bool:
        """The next one of the queue ends before it has begun, if it is this one and there is none that runs. False: it is not."""
        if self.running is not None or not self.queue or self.queue[0].instruction != instruction:
            return False
        self.begin(time.monotonic())
        self._end(End(instruction, "interrupted", 0, note="it had not begun: the interpreter was not ready for it"))
        return True

    # --- ends ------------------------------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """For the end of the running instruction, or of the next one."""
        if len(self._notes) == NOTES_MAX:
            self._notes[-1] = "and more of the kind"
        else:
            self._notes.append(text)

    def take_end(self, body: bytes) -> None:
        """What the interpreter says is the end. Raises ProtocolError when it cannot be."""
        if self._nothing_to_add and (plain := shortcuts.ended(body)) is not None:
            self._check(plain)
            self._tell(body)
            return
        end = decode_from_interpreter(End.kind, body)
        if not isinstance(end, End) or end.end == "died":
            raise ProtocolError("an end came that is not the interpreter's to tell")
        self._check(end.instruction)
        self._end(end, body)

    def fail(self, message: str) -> None:
        """The end of the running one, if any: its interpreter is gone."""
        if self.running is not None:
            self._end(End(self.running.instruction, "died", 0, error_name="InterpreterDied", error_message=message))

    def _check(self, instruction: int) -> None:
        if self.running is None or instruction != self.running.instruction:
            raise ProtocolError("an end came for an instruction that does not run")

    @property
    def _nothing_to_add(self) -> bool:
        return not (self._notes or self._outlet.dropped_bytes or self._outlet.dropped_between_bytes)

    def _end(self, end: End, body: bytes | None = None) -> None:
        """With what only the agent knows put in. `body` is the message as it came."""
        if body is None or end.dropped_bytes or not self._nothing_to_add:  # what was dropped is not the interpreter's to tell
            note = "; ".join([*([end.note] if end.note else []), *self._dropped(), *self._notes])
            body = encode(dataclasses.replace(end, note=note or None, dropped_bytes=self._outlet.dropped_bytes))
            self._notes = []
        self._tell(body)

    def _dropped(self) -> Iterator[str]:
        if dropped := self._outlet.dropped_bytes:
            yield f"{dropped} bytes of output past the limit of {self.limits.output_bytes_max} were dropped"
        if between := self._outlet.dropped_between_bytes:
            yield f"{between} bytes of output between instructions were dropped"

    def _tell(self, body: bytes) -> None:
        self._outlet.flush()
        self._link.send_encoded(End.kind, body)
        self.running = None
        self.calls.end()
        self._outlet.end()

    # --- displays --------------------------------------------------------------------------------------------------------------------

    def take_display(self, body: bytes) -> None:
        display = decode_from_interpreter(Display.kind, body)
        if isinstance(display, Display) and self._outlet.allow_whole(len(body)):
            self._outlet.flush()
            self._link.send(dataclasses.replace(display, instruction=self._outlet.instruction))
