"""One instruction, from `run` to its end. The deadline is ours: interrupt, then kill the interpreter, then give the sandbox up."""

from __future__ import annotations

import asyncio
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
        self.wish: Why | None = None  # to stop it, from who cannot do so now
        self._settings = settings
        self._left_seconds = instruction.work.timeout_seconds
        self._why: Why | None = None
        self._ending: asyncio.Task[None] | None = None
        self._end: asyncio.Future[End] | None = None

    async def run(self) -> End | None:
        """Start it and wait for its end; None when it waits itself, for an answer. Raises SandboxLost."""
        assert self._incarnation is not None
        self._expect(await self._incarnation.start_turn(self.instruction.number, self.instruction.work, self.calls))
        if self.wish is not None:
            self.stop(self.wish)
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
        deadline = loop.call_later(self._left_seconds, self.stop, "timed_out")
        try:
            return await self._end if self.calls is None else await self._end_or_call(self.calls, self._end)
        finally:
            deadline.cancel()
            self._left_seconds = max(0.0, self._left_seconds - (loop.time() - began))
            if self._ending is not None:
                self._ending.cancel()

    async def _end_or_call(self, calls: Calls, end: asyncio.Future[End]) -> End | None:
        while not end.done():
            if calls.waiting and self._ending is None:  # one that is being stopped gets no more answers
                return None
            await asyncio.wait([end, calls.next_change()], return_when=asyncio.FIRST_COMPLETED)
        return end.result()

    def stop(self, why: Why) -> None:
        """Interrupt it; what it answers is seen by whoever waits in `run`."""
        if self._end is None:
            self.wish = why  # it is just being sent
        elif self._ending is None and not self._end.done():
            self._why = why
            self._ending = asyncio.get_running_loop().create_task(self._insist())

    async def end_wait(self, why: Why) -> None:
        """Stop it while it waits for an answer."""
        self._why = why
        await self._insist()

    async def _insist(self) -> None:
        assert self._end is not None
        assert self._incarnation is not None
        try:
            await self._incarnation.interrupt(self.instruction.number)
            if await _settled(self._end, self._settings.interrupt_grace_seconds):
                return
            await self._incarnation.kill(self.instruction.number)
            if await _settled(self._end, self._settings.kill_grace_seconds):
                return
        except EverforgeError:
            return  # the sandbox is gone: `run` hears of it by itself
        self._incarnation.lose(Ending(How.EXITED, "the guest answered neither an interrupt nor a kill"))

    def ended(self, end: End, notice: str | None) -> Ended:
        """The guest's word, in the tape's."""
        kind: EndKind = "error" if end.end == "died" else end.end
        error = _error_line(end)
        notes = [n for n in (notice, end.note) if n]
        if self._why == "timed_out":
            kind = "timed_out"
            error = f"Timed out after {self.instruction.work.timeout_seconds:g} s" + (f": {error}" if end.end == "died" and error else "")
            if end.end in ("value", "error"):
                notes.append("the code ended by itself after it had been interrupted")
        elif self._why == "interrupted" and end.end == "died":
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


async def _settled(future: asyncio.Future[End], seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)


def _error_line(end: End) -> str | None:
    if end.error_name and end.error_message:
        return f"{end.error_name}: {end.error_message}"
    return end.error_message or end.error_name
