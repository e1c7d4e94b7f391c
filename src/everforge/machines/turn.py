"""One instruction, from `run` to its end.

Code may catch the interrupt of a person and go on, as at any Python prompt. The deadline is ours, and so is the second interrupt: then comes another,
then the interpreter is killed, then the sandbox given up.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

from everforge.engine.base import Ending, How
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Ended, EndKind
from everforge.wire.messages import End

from .agenda import Instruction
from .calls import Calls
from .incarnation import Incarnation
from .settings import MachineSettings

Why = Literal["timed_out", "interrupted"]


class TurnRun:
    """`calls` are those of functions of the client's program; None where the instruction has been given none."""

    def __init__(self, incarnation: Incarnation | None, instruction: Instruction, settings: MachineSettings, calls: Calls | None = None) -> None:
        self._incarnation = incarnation
        self.instruction = instruction
        self.calls = calls
        self._asks = 0  # to stop it, of those who could not do so then
        self._settings = settings
        self._left_seconds = instruction.work.timeout_seconds
        self._why: Why | None = None
        self._interrupting: asyncio.Task[None] | None = None
        self._insisting: asyncio.Task[None] | None = None
        self._killed = False
        self._end: asyncio.Future[End] | None = None

    async def run(self) -> End | None:
        """Start it and wait for its end; None when it waits itself, for an answer. Raises SandboxLost."""
        assert self._incarnation is not None
        self._expect(await self._incarnation.start_turn(self.instruction.number, self.instruction.work, self.calls))
        for _ in range(self._take_asks()):
            self.interrupt()
        return await self.go_on()

    async def resume(self, end: asyncio.Future[End], ran_seconds: float) -> End | None:
        """Go on waiting for one that an earlier server started."""
        self._expect(end)
        self._left_seconds = max(0.0, self.instruction.work.timeout_seconds - ran_seconds)
        return await self.go_on()

    def move_in(self, incarnation: Incarnation, waiting: list[int], ran_seconds: float, next_seq: int) -> None:
        """Its machine slept while it waited, and is awake in another sandbox now."""
        assert self.calls is not None
        self._incarnation = incarnation
        self.calls.arrive(waiting)
        self._left_seconds = max(0.0, self.instruction.work.timeout_seconds - ran_seconds)
        self._expect(incarnation.expect_end(self.instruction.number, next_seq, self.calls))

    def _expect(self, end: asyncio.Future[End]) -> None:
        self._end = end
        if self.calls is not None:
            calls = self.calls
            end.add_done_callback(lambda _: calls.on_change())

    @property
    def is_over(self) -> bool:
        """Has the guest told its end?"""
        end = self._end
        return end is not None and end.done() and not end.cancelled() and end.exception() is None

    async def go_on(self) -> End | None:
        """Its clock goes while it does not wait for an answer."""
        assert self._end is not None
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = loop.call_later(self._left_seconds, self.insist, "timed_out")
        try:
            return await self._end if self.calls is None else await self._end_or_call(self.calls, self._end)
        finally:
            deadline.cancel()
            self._left_seconds = max(0.0, self._left_seconds - (loop.time() - began))
            for task in (self._interrupting, self._insisting):
                if task is not None:
                    task.cancel()

    async def _end_or_call(self, calls: Calls, end: asyncio.Future[End]) -> End | None:
        while not end.done():
            if calls.waiting and self._insisting is None:  # one that must stop gets no more answers
                if self._interrupting is None or self._interrupting.done():
                    return None
                await asyncio.wait([self._interrupting])  # it hears of it where it waits
                continue  # somebody may have insisted meanwhile
            await asyncio.wait([end, calls.next_change()], return_when=asyncio.FIRST_COMPLETED)
        return end.result()

    # --- its end before its time -------------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """What it answers is seen by whoever waits in `run`. The second time insists."""
        if self._end is None:
            self._asks += 1  # it is just being sent
        elif self._why is not None:
            self.insist("interrupted")
        elif not self._end.done():
            self._why = "interrupted"
            self._interrupting = asyncio.get_running_loop().create_task(self._interrupt())

    def insist(self, why: Why) -> None:
        """Interrupt it, and if it does not end then, kill it."""
        if self._end is None:
            self._asks = 2
        elif self._insisting is None and not self._end.done():
            self._why = why
            self._insisting = asyncio.get_running_loop().create_task(self._insist())

    def ask_to_stop(self) -> None:
        """While it waits for an answer: whoever follows it does so with `stop_waiting`, or knows that its machine sleeps."""
        self._asks += 1

    @property
    def is_asked_to_stop(self) -> bool:
        return self._asks > 0

    def _take_asks(self) -> int:
        asks, self._asks = self._asks, 0
        return asks

    async def stop_waiting(self) -> None:
        """Interrupt it where it waits for an answer. It ends, or no longer waits, or waits again: then the second time insists."""
        assert self._end is not None
        assert self.calls is not None
        if self._take_asks() > 1 or self._why is not None:
            self._why = "interrupted"
            await self._insist()
            return
        self._why = "interrupted"
        change = self.calls.next_change()
        await self._interrupt()
        await asyncio.wait([self._end, change], timeout=self._settings.interrupt_grace_seconds, return_when=asyncio.FIRST_COMPLETED)

    async def _interrupt(self) -> None:
        assert self._incarnation is not None
        self._incarnation.line.await_answer(self._settings.interrupt_grace_seconds)
        with contextlib.suppress(EverforgeError):  # the sandbox is gone: `run` hears of it by itself
            await self._incarnation.interrupt(self.instruction.number)

    async def _insist(self) -> None:
        assert self._end is not None
        assert self._incarnation is not None
        line = self._incarnation.line
        try:
            await self._incarnation.interrupt(self.instruction.number)
            if await line.settled(self._end, self._settings.interrupt_grace_seconds):
                return
            self._killed = True
            await self._incarnation.kill(self.instruction.number)
            if await line.settled(self._end, self._settings.kill_grace_seconds):
                return
        except EverforgeError:
            return  # the sandbox is gone: `run` hears of it by itself
        self._incarnation.lose(Ending(How.EXITED, "the guest answered neither an interrupt nor a kill"))

    def _ended_in_time(self, end: End) -> bool:
        """By its own word, which came late behind a flood of what was said before."""
        return end.end in ("value", "error") and end.runtime_us <= self.instruction.work.timeout_seconds * 1e6

    def ended(self, end: End, notice: str | None) -> Ended:
        """The guest's word, in the tape's."""
        kind: EndKind = "error" if end.end == "died" else end.end
        error = _error_line(end)
        notes = [n for n in (notice, end.note) if n]
        if self._why == "timed_out" and not self._ended_in_time(end):
            kind = "timed_out"
            error = f"Timed out after {self.instruction.work.timeout_seconds:g} s" + (f": {error}" if end.end == "died" and error else "")
            if end.end in ("value", "error"):
                notes.append("the code ended by itself after it had been interrupted")
        elif self._killed and end.end == "died":
            kind = "interrupted"
        if kind == "interrupted":
            error = error or "KeyboardInterrupt"
        return Ended(
            instruction=end.instruction,
            end=kind,
            runtime_ms=max(0, end.runtime_us // 1000),
            value=end.value if kind == "value" else None,
            data=end.data if kind == "value" else None,
            error=error if kind != "value" else None,
            traceback=end.traceback if kind != "value" else None,
            note="; ".join(notes) or None,
            displays=self._incarnation.displays if self._incarnation else None,
        )


def _error_line(end: End) -> str | None:
    if end.error_name and end.error_message:
        return f"{end.error_name}: {end.error_message}"
    return end.error_message or end.error_name
