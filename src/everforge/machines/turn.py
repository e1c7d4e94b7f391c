"""One instruction, from `run` to its end. The deadline is ours: interrupt, then kill the interpreter, then give the sandbox up."""

from __future__ import annotations

import asyncio
from typing import Literal

from everforge.engine.base import Ending, How
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Ended, EndKind
from everforge.wire.messages import End

from .agenda import Instruction
from .incarnation import Incarnation
from .settings import MachineSettings

Why = Literal["timed_out", "interrupted"]


class TurnRun:
    def __init__(self, incarnation: Incarnation, instruction: Instruction, settings: MachineSettings) -> None:
        self._incarnation = incarnation
        self.instruction = instruction
        self._settings = settings
        self._why: Why | None = None
        self._wish: Why | None = None
        self._ending: asyncio.Task[None] | None = None
        self._end: asyncio.Future[End] | None = None

    async def run(self) -> End:
        """Start it and wait for its end. Raises SandboxLost."""
        self._end = await self._incarnation.start_turn(self.instruction.number, self.instruction.work)
        if self._wish is not None:
            self.stop(self._wish)
        return await self._wait(self.instruction.work.timeout_seconds)

    async def resume(self, end: asyncio.Future[End], ran_seconds: float) -> End:
        """Go on waiting for one that an earlier server started."""
        self._end = end
        return await self._wait(max(0.0, self.instruction.work.timeout_seconds - ran_seconds))

    async def _wait(self, seconds: float) -> End:
        assert self._end is not None
        deadline = asyncio.get_running_loop().call_later(seconds, self.stop, "timed_out")
        try:
            return await self._end
        finally:
            deadline.cancel()
            if self._ending is not None:
                self._ending.cancel()

    def stop(self, why: Why) -> None:
        """Interrupt it; what it answers is seen by whoever waits in `run`."""
        if self._end is None:
            self._wish = why  # it is just being sent
        elif self._ending is None and not self._end.done():
            self._why = why
            self._ending = asyncio.get_running_loop().create_task(self._insist())

    async def _insist(self) -> None:
        assert self._end is not None
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
            displays=self._incarnation.displays,
        )


async def _settled(future: asyncio.Future[End], seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)


def _error_line(end: End) -> str | None:
    if end.error_name and end.error_message:
        return f"{end.error_name}: {end.error_message}"
    return end.error_message or end.error_name
