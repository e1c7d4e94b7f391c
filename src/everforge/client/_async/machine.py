"""A machine, as a program holds it: a name and a door. Making one of these objects asks nobody anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from everforge.wire import api
from everforge.wire.events import START
from everforge.wire.ids import machine_name

from ..answering import check_wait
from ..functions import Functions
from ..pauses import Deadline
from ..results import Display, Line, Result
from .door import SLOW_SECONDS, AsyncDoor, new_key, segment
from .egress import AsyncEgress
from .files import AsyncFiles
from .instruction import AsyncInstruction, instruction_text
from .tape import AsyncTapeReader, Entry, pages

if TYPE_CHECKING:
    from .repl import AsyncRepl

INSTRUCTIONS_A_PAGE = 100


class AsyncMachine:
    """Leaving its `with` block closes nothing but this object: the machine goes on, and sleeps when it is idle. `delete()` ends it."""

    def __init__(self, door: AsyncDoor, name: str) -> None:
        self.name = machine_name(name)  # it becomes part of an address: nothing else may
        self._door = door
        self._path = f"/machine/{self.name}"
        self.files = AsyncFiles(door, self._path)
        self.egress = AsyncEgress(door, self._path)

    def __repr__(self) -> str:
        return f"<machine {self.name} at {self._door.base_url}>"

    async def __aenter__(self) -> AsyncMachine:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing is held that would have to be given back."""

    # --- instructions ----------------------------------------------------------------------------------------------------------------------

    async def run(
        self,
        code: str,
        *,
        timeout_seconds: float | None = None,
        env: Mapping[str, str] | None = None,
        interrupt: bool = False,
        on_stdout: Callable[[Line], Any] | None = None,
        on_stderr: Callable[[Line], Any] | None = None,
        on_display: Callable[[Display], Any] | None = None,
        functions: Functions | None = None,
        wait_seconds: float | None = None,
    ) -> Result:
        """Runs code and waits for its end. An exception of the code is `result.error`; only what goes wrong around it is raised."""
        check_wait(self._door.base_url, self.name)
        deadline = Deadline(wait_seconds)
        instruction = await self.exec(code, timeout_seconds=timeout_seconds, env=env, interrupt=interrupt, functions=functions)
        return await instruction.result(on_stdout=on_stdout, on_stderr=on_stderr, on_display=on_display, wait_seconds=deadline.left)

    async def exec(
        self,
        code: str,
        *,
        timeout_seconds: float | None = None,
        env: Mapping[str, str] | None = None,
        interrupt: bool = False,
        functions: Functions | None = None,
        key: str | None = None,
    ) -> AsyncInstruction:
        """Hands code over and returns as soon as it is accepted. Calls of `functions` are answered while its result or its lines are waited for."""
        text = instruction_text(code, timeout_seconds, env, functions)
        request = api.Exec(instruction=text, interrupt=interrupt or None)
        accepted = await self._door.post(api.Accepted, f"{self._path}/exec", request, key=key or new_key())
        return AsyncInstruction(self._door, self.name, accepted.instruction_seq, fresh=key is None, functions=functions)

    async def stream(
        self, code: str, *, timeout_seconds: float | None = None, env: Mapping[str, str] | None = None, functions: Functions | None = None
    ) -> AsyncIterator[Line]:
        """Runs code and gives its lines as they come; raises InstructionFailed at the end if it does not end well."""
        check_wait(self._door.base_url, self.name)
        instruction = await self.exec(code, timeout_seconds=timeout_seconds, env=env, functions=functions)
        async with aclosing(instruction.stream()) as lines:
            async for line in lines:
                yield line
        (await instruction.result()).raise_for_error()

    def instruction(self, number: int) -> AsyncInstruction:
        """One that was accepted earlier, by this program or another."""
        return AsyncInstruction(self._door, self.name, number)

    async def instructions(self, *, after: int | None = None) -> AsyncIterator[api.Instruction]:
        """From the first, or behind one; pages by itself."""
        while True:
            page = await self._door.get(api.InstructionList, f"{self._path}/exec", {"after": after, "limit": INSTRUCTIONS_A_PAGE})
            for found in page.instructions:
                yield found
            if page.next is None:
                return
            after = page.next

    def repl(self, *, after: int | None = None) -> AsyncRepl:
        """One connection for many instructions: quickest for small ones, and hears what other clients do."""
        from .repl import AsyncRepl  # and with it the WebSocket library: most programs, and most commands, do without

        return AsyncRepl(self._door, self.name, after)

    def tape(self, *, after: int = START, follow: bool = False, wait_seconds: float | None = None) -> AsyncIterator[Entry]:
        """Every entry behind `after`, each once. With `follow` it goes on for as long as the machine is there."""
        path = f"{self._path}/tape"
        return AsyncTapeReader(self._door, path, after, Deadline(wait_seconds)) if follow else pages(self._door, path, after)

    async def interrupt(self, *, pending: bool = False) -> bool:
        """What runs now; with `pending` what waits, too. Was there anything?"""
        return (await self._door.post(api.Interrupted, f"{self._path}/interrupt", api.Interrupt(pending=pending or None))).interrupted

    async def complete(self, code: str, cursor: int | None = None) -> api.Completed:
        """What could stand at the cursor (the end, when none is given), as the live machine sees it."""
        return await self._door.post(api.Completed, f"{self._path}/complete", api.Complete(code=code, cursor=cursor), again=True)

    # --- the machine itself ------------------------------------------------------------------------------------------------------------------

    async def info(self) -> api.Machine:
        return await self._door.get(api.Machine, self._path)

    async def update(
        self,
        *,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idle_seconds: float | None = None,
        history: Literal["idle", "each"] | None = None,
        durability: Literal["idle", "each"] | None = None,
        expires_at: str | None = None,
    ) -> api.Machine:
        """What is given is changed; tags and metadata as a whole. `expires_at="never"` clears it."""
        change = api.MachineChange(
            tags=None if tags is None else dict(tags), metadata=None if metadata is None else dict(metadata), idle_seconds=idle_seconds,
            history=history, durability=durability, expires_at=expires_at,
        )  # fmt: skip
        return await self._door.post(api.Machine, self._path, change, again=True, method="PATCH")

    async def delete(self) -> None:
        """At once and for ever, whatever it is doing."""
        await self._door.delete(self._path)

    async def hibernate(self) -> api.Machine:
        """Answers when it is asleep."""
        return await self._door.post(api.Machine, f"{self._path}/hibernate", again=True, silence_seconds=SLOW_SECONDS)

    async def wake(self) -> api.Machine:
        """Not needed before an instruction: that wakes it by itself."""
        return await self._door.post(api.Machine, f"{self._path}/wake", again=True, silence_seconds=SLOW_SECONDS)

    async def reset(self, *, discard: bool = False) -> str | None:
        """A fresh interpreter and fresh files. The snapshot that brings back what was before, where there was something.

        With `discard` a machine that is awake is not saved first: what is there now is gone. It is the way back of one that cannot be saved.
        """
        request = api.Reset(discard=discard or None)
        return (await self._door.post(api.WasReset, f"{self._path}/reset", request, silence_seconds=SLOW_SECONDS)).undo

    # --- copies and points to go back to -------------------------------------------------------------------------------------------------------

    async def fork(self, name: str | None = None) -> AsyncMachine:
        """A copy of the living machine, memory and files, that goes its own way from now on."""
        return (await self._fork(api.Fork(names=None if name is None else [name])))[0]

    async def forks(self, count: int | None = None, *, names: Sequence[str] | None = None) -> list[AsyncMachine]:
        """Several at once, for the price of one save."""
        return await self._fork(api.Fork(names=None if names is None else list(names), count=count))

    async def _fork(self, request: api.Fork) -> list[AsyncMachine]:
        made = await self._door.post(api.Forked, f"{self._path}/fork", request, key=new_key(), silence_seconds=SLOW_SECONDS)
        return [AsyncMachine(self._door, name) for name in made.machine_names]

    async def snapshot(self, name: str | None = None) -> api.Snapshot:
        """A point to go back to or to fork from; kept for as long as it has a name."""
        return await self._door.post(api.Snapshot, f"{self._path}/snapshots", api.NewSnapshot(name=name), silence_seconds=SLOW_SECONDS)

    async def snapshots(self) -> list[api.Snapshot]:
        return (await self._door.get(api.SnapshotList, f"{self._path}/snapshots")).snapshots

    async def delete_snapshot(self, snapshot: str) -> None:
        await self._door.delete(f"{self._path}/snapshots/{segment(snapshot)}")

    async def rollback(self, to: str | int | None = None, *, discard: bool = False) -> api.RolledBack:
        """To a snapshot by id or name, to the state right after an instruction by its number, or to the newest snapshot. `undo` undoes it.

        `discard` as for `reset`.
        """
        request = api.Rollback(to=to, discard=discard or None)
        return await self._door.post(api.RolledBack, f"{self._path}/rollback", request, silence_seconds=SLOW_SECONDS)
