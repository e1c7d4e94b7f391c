"""An instruction that a machine has accepted: its lines as they come, and its result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from everforge.wire import api
from everforge.wire.errors import MachineNotFound, StillRunning
from everforge.wire.events import START
from everforge.wire.sentences import say

from .. import inputs
from ..answering import check_wait
from ..functions import Functions, checked
from ..pauses import Deadline
from ..results import Call, Display, Gathering, Line, Result
from .answers import AsyncAnswers
from .door import AsyncDoor
from .tape import AsyncTapeReader, Entry, pages
from .transport import ASYNCHRONOUS, call


@dataclass(frozen=True, slots=True)
class Watch:
    """Whom to tell of what happens, and the functions that the code may call here."""

    on_stdout: Callable[[Line], Any] | None = None
    on_stderr: Callable[[Line], Any] | None = None
    on_display: Callable[[Display], Any] | None = None
    functions: Functions = field(default_factory=dict[str, Callable[..., Any]])

    def whom(self, happening: Line | Display) -> Callable[[Any], Any] | None:
        if isinstance(happening, Display):
            return self.on_display
        return self.on_stderr if happening.stream == "stderr" else self.on_stdout


class AsyncEntries(Protocol):
    """Where the entries come from: the tape over HTTP, or the WebSocket of a Repl."""

    deadline: Deadline

    async def next(self) -> Entry: ...

    async def finish(self) -> None: ...

    async def close(self) -> None: ...


class AsyncInstruction:
    """Numbered from 0 within its machine. Whoever drops this object loses nothing: the machine and its tape keep it."""

    def __init__(
        self,
        door: AsyncDoor,
        machine: str,
        number: int,
        *,
        fresh: bool = False,
        functions: Functions | None = None,
        source: AsyncEntries | None = None,
    ) -> None:
        self.machine_name = machine
        self.number = inputs.number(number)
        self._door = door
        self._path = f"/machine/{machine}"
        self._functions = checked(functions, asynchronous=ASYNCHRONOUS)
        self._answers = AsyncAnswers(door, machine, number)
        self._fresh = fresh  # accepted just now, by us: none of its calls has been answered before
        self._source = source
        self._result: Result | None = None

    def __repr__(self) -> str:
        return f"<instruction {self.number} of {self.machine_name}>"

    async def info(self) -> api.Instruction:
        return await self._door.get(api.Instruction, f"{self._path}/exec/{self.number}")

    async def interrupt(self) -> bool:
        """This one alone, whether it runs or still waits behind others. False when it has ended already.

        Code may catch the first interrupt; a second one insists, and kills what still runs, with its variables."""
        request = api.Interrupt(instruction=self.number)
        return (await self._door.post(api.Interrupted, f"{self._path}/interrupt", request)).interrupted

    async def result(
        self,
        *,
        wait_seconds: float | None = None,
        on_stdout: Callable[[Line], Any] | None = None,
        on_stderr: Callable[[Line], Any] | None = None,
        on_display: Callable[[Display], Any] | None = None,
        functions: Functions | None = None,
    ) -> Result:
        """Waits for it; StillRunning after `wait_seconds`, when they are given. The same result again when asked again."""
        if self._result is None:
            watch = Watch(on_stdout, on_stderr, on_display, self._given(functions))
            async with aclosing(self._follow(watch.functions, wait_seconds)) as happenings:
                async for happening in happenings:
                    told = watch.whom(happening)
                    if told is not None:
                        await call(told, happening)
        assert self._result is not None
        return self._result

    async def stream(self, *, functions: Functions | None = None, wait_seconds: float | None = None) -> AsyncGenerator[Line]:
        """Its lines from the first on, as they come, until it ends; then `result()` has the end."""
        async with aclosing(self._follow(self._given(functions), wait_seconds)) as happenings:
            async for happening in happenings:
                if isinstance(happening, Line):
                    yield happening

    # --- following it through the tape -----------------------------------------------------------------------------------------------------

    def _given(self, functions: Functions | None) -> Functions:
        return self._functions if functions is None else checked(functions, asynchronous=ASYNCHRONOUS)

    async def _follow(self, functions: Functions, wait_seconds: float | None) -> AsyncGenerator[Line | Display]:
        check_wait(self._door.base_url, self.machine_name, self.number)
        gathering, deadline = Gathering(self.number), Deadline(wait_seconds)
        with self._explained():
            done = await self._answered(functions, deadline)
        source = self._open(deadline)
        try:
            while gathering.result is None:
                with self._explained():
                    entry = await source.next()
                for happening in gathering.take(entry):
                    if not isinstance(happening, Call):
                        yield happening
                    elif happening.function in functions and happening.number not in done:
                        await self._answers.answer(happening, functions[happening.function])
            self._result = gathering.result
            await source.finish()
        finally:
            await source.close()

    def _open(self, deadline: Deadline) -> AsyncEntries:
        source, self._source = self._source, None
        if source is not None:
            source.deadline = deadline
            return source
        return AsyncTapeReader(self._door, f"{self._path}/tape", START, deadline, self.number)

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except StillRunning as e:
            raise StillRunning(say("not_ended", number=self.number, machine=self.machine_name)) from e
        except MachineNotFound as e:
            raise MachineNotFound(say("deleted_before_end", machine=self.machine_name, number=self.number)) from e

    async def _answered(self, functions: Functions, deadline: Deadline) -> set[int]:
        """Of an instruction that was begun earlier: calls that have their answer. The others are still waited for."""
        if not functions or self._fresh:
            self._fresh = False  # a second reading sees calls that the first has answered
            return set()
        done: set[int] = set()
        async for entry in pages(self._door, f"{self._path}/tape", START, self.number, deadline):
            if entry["type"] == "answered":
                done.add(entry["call"])
        return done


def instruction_text(code: str, timeout_seconds: float | None, env: Mapping[str, str] | None, functions: Functions | None) -> api.InstructionText:
    names = sorted(checked(functions, asynchronous=ASYNCHRONOUS)) or None
    return api.InstructionText(code=inputs.code(code), timeout_seconds=inputs.timeout_seconds(timeout_seconds), env=inputs.env(env), functions=names)
