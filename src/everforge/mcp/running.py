"""Code that runs in a machine for a call: its output as it comes, its end, and what happens to it when the call is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from everforge import AsyncInstruction, AsyncMachine, Display, EverforgeError, Line, Result
from everforge.wire.errors import StillRunning

from .calls import Call
from .cutting import Middle
from .limits import INTERRUPT_SECONDS
from .pictures import Shown
from .reach import Lost


class Output:
    """What came so far, no more of it than a result has room for."""

    def __init__(self, call: Call) -> None:
        room = call.settings.output_characters
        self.stdout, self.stderr = Middle(room - room // 4), Middle(room // 4)
        self.both = Middle(room)  # in the order in which it came
        self.shown = Shown()
        self.begun = False  # something came
        self._progress = call.progress

    def hear(self, line: Line) -> None:
        self.begun = True
        for kept in (self.stderr if line.stream == "stderr" else self.stdout, self.both):
            kept.add(line + line.end)
        self._progress.line(line)

    def see(self, display: Display) -> None:
        self.begun = True
        self.shown.add(display.data)


@dataclass
class Ran:
    machine: str
    instruction: int
    output: Output
    result: Result | None  # None: it still runs
    lost: bool = False  # or may, and nobody can be asked

    @property
    def unended(self) -> str:
        """What a model must know of code that has not ended, as far as anybody knows."""
        more = f'read_output(machine="{self.machine}", instruction={self.instruction})'
        if not self.lost:
            return f"It still runs: {more} tells more, interrupt stops it."
        return (
            "The connection to the Everforge server was lost, and nobody answers there now. The code may still run, or have ended: do not repeat it"
            f" before {more} has told you, once the server is back. If it stays away, tell the person you work for: `everforge serve` starts it."
        )


async def run(call: Call, machine: AsyncMachine, code: str, timeout_seconds: float, wait_seconds: float | None = None) -> Ran:
    """A call that is cancelled interrupts its code; one whose client has gone leaves it running."""
    output, result, lost = Output(call), None, False
    async with _accepted(call, machine, code, timeout_seconds) as instruction:
        try:
            async with call.reach.watched(instruction.info):
                result = await instruction.result(
                    wait_seconds=wait_seconds, on_stdout=output.hear, on_stderr=output.hear, on_display=output.see
                )  # fmt: skip
        except StillRunning:
            pass
        except Lost:
            lost = True
    if result is not None:
        output.shown.add(result.data, text_too=False)  # its text is the value
    return Ran(machine.name, instruction.number, output, result, lost)


@asynccontextmanager
async def _accepted(call: Call, machine: AsyncMachine, code: str, timeout_seconds: float) -> AsyncGenerator[AsyncInstruction]:
    """Whoever cancels while the machine is still being asked means what it was asked, too: so that answer is waited for."""
    accepting = asyncio.ensure_future(machine.exec(code, timeout_seconds=timeout_seconds))
    try:
        yield await asyncio.shield(accepting)
    except asyncio.CancelledError:
        if not call.link.closed:
            with anyio.move_on_after(INTERRUPT_SECONDS, shield=True):
                await _interrupt(accepting)
        raise
    finally:
        if not accepting.done():
            accepting.cancel()


async def _interrupt(accepting: asyncio.Future[AsyncInstruction]) -> None:
    try:
        await (await accepting).interrupt()
    except EverforgeError:
        pass  # it has ended, or nobody can be asked: its own timeout ends it
