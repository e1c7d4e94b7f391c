"""What code has said and where it got to: read the rest, interrupt it."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from everforge import AsyncInstruction
from everforge.wire.errors import StillRunning

from ..answers import Answer
from ..calls import Call
from ..limits import OUTPUT_CHARACTERS, TIMEOUT_SECONDS
from .base import Arguments, Data, MachineName, Tool, changes, reads

READ_CHARACTERS_MAX = 100_000
LOOK_SECONDS = 1.0  # for what is on the tape already, unless more is to be waited for


class ReadOutput(Arguments):
    instruction: Annotated[int, Field(ge=0, description="Its number, which every result of run_python has.")]
    machine: MachineName = ""
    stream: Annotated[Literal["stdout", "stderr", "value", "traceback"], Field(description="What of it to read.")] = "stdout"
    offset: Annotated[int, Field(ge=0, description="From which character on.")] = 0
    characters: Annotated[int, Field(ge=1, le=READ_CHARACTERS_MAX, description="How many.")] = OUTPUT_CHARACTERS
    wait_seconds: Annotated[
        float, Field(gt=0, le=TIMEOUT_SECONDS, description="Of code that still runs: answer after that long with what there is by then.")
    ] = LOOK_SECONDS


class OutputRead(Data):
    machine: str
    instruction: int
    stream: str
    text: str
    offset: int
    next_offset: int | None = Field(default=None, description="Where to read on; null: this is the end of what there is.")
    end: str = Field(
        description="How the code ended: value, error, interrupted, timed_out, lost, cancelled; running: not yet; unknown: more to read."
    )


@dataclass
class _Window:
    """Of a text that is not held."""

    offset: int
    characters: int
    parts: list[str] = field(default_factory=list[str])
    position: int = 0

    def add(self, text: str) -> None:
        begin, end = max(self.offset - self.position, 0), self.offset + self.characters - self.position
        if end > 0 and begin < len(text):
            self.parts.append(text[begin:end])
        self.position += len(text)

    @property
    def more(self) -> bool:
        return self.position > self.offset + self.characters


async def read_output(call: Call, given: ReadOutput) -> Answer:
    machine = await call.existing(given.machine)
    instruction = machine.instruction(given.instruction)
    await instruction.info()  # InstructionNotFound, rather than waiting for one that never comes
    window = _Window(given.offset, given.characters)
    end = await (_read_lines if given.stream in ("stdout", "stderr") else _read_end)(call, instruction, given, window)
    text = "".join(window.parts)
    following = given.offset + len(text) if window.more or (end == "running" and given.stream in ("stdout", "stderr")) else None
    data = OutputRead(
        machine=machine.name, instruction=given.instruction, stream=given.stream, text=text, offset=given.offset, next_offset=following, end=end
    )  # fmt: skip
    return Answer(f"{text}\n[{_where(data)}]", data)


async def _read_lines(call: Call, instruction: AsyncInstruction, given: ReadOutput, window: _Window) -> str:
    """Line by line, and no further than was asked for."""
    try:
        async with call.reach.watched(instruction.info), aclosing(instruction.stream(wait_seconds=given.wait_seconds)) as lines:
            async for line in lines:
                if line.stream == given.stream:
                    window.add(line + line.end)
                if window.more:
                    return "unknown"
    except StillRunning:
        return "running"
    return (await instruction.result()).end


async def _read_end(call: Call, instruction: AsyncInstruction, given: ReadOutput, window: _Window) -> str:
    try:
        async with call.reach.watched(instruction.info):
            result = await instruction.result(wait_seconds=given.wait_seconds)
    except StillRunning:
        return "running"
    window.add((result.value if given.stream == "value" else result.traceback or result.error) or "")
    return result.end


def _where(data: OutputRead) -> str:
    place = f"{data.stream} of instruction {data.instruction} of machine {data.machine}"
    read = f"characters {data.offset} to {data.offset + len(data.text)}"
    state = "it still runs; " if data.end == "running" else "" if data.end == "unknown" else f"it ended with: {data.end}; "
    return f"{place}, {read}; {state}" + (f"read on with offset={data.next_offset}" if data.next_offset is not None else "there is no more")


class Interrupt(Arguments):
    machine: MachineName = ""
    pending: Annotated[bool, Field(description="Also take back what still waits behind it.")] = False


class Interrupted(Data):
    machine: str
    interrupted: bool = Field(description="Was there anything?")


async def interrupt(call: Call, given: Interrupt) -> Answer:
    machine = await call.existing(given.machine)
    found = await machine.interrupt(pending=given.pending)
    text = (
        "interrupted: its code got a KeyboardInterrupt; a second interrupt kills what still runs, with its variables"
        if found
        else "nothing was running"
    )
    return Answer(f"{text} [machine {machine.name}]", Interrupted(machine=machine.name, interrupted=found))


READ = Tool(
    "read_output",
    "Read output",
    """Read what code has printed, in parts: the rest of an output that was cut, or more of code that still runs (run_python with wait_seconds).

Output is kept with the machine, so this also works long after, and for code that another call or another client ran.

Example: {"instruction": 12, "offset": 12000}""",
    ReadOutput,
    OutputRead,
    reads(),
    read_output,
)
INTERRUPT = Tool(
    "interrupt",
    "Interrupt",
    """Stop what runs in a machine, as Ctrl-C does. Variables are kept. Code may catch the first interrupt; calling this a second time kills what
still runs, with the machine's variables.

Use it when run_python said that something still runs and you do not want its end, or when a machine seems stuck.

Example: {}""",
    Interrupt,
    Interrupted,
    changes(destructive=True),
    interrupt,
)
