"""One connection to one machine, for many instructions one after another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any

from everforge.wire import api
from everforge.wire.errors import MachineNotFound

from ..answering import check_wait
from ..decoding import read
from ..functions import Functions
from ..results import Display, Line, Result
from .channel import AsyncChannel, AsyncListener
from .door import AsyncDoor, body_of, new_key
from .instruction import AsyncInstruction, instruction_text
from .tape import Entry


class AsyncRepl:
    """Finds its way back after a cut or a restart of the server: no line comes twice, none is lost. Use it in a `with` block."""

    def __init__(self, door: AsyncDoor, machine: str, after: int | None = None) -> None:
        self.machine_name = machine
        self._door = door
        self._channel = AsyncChannel(door, machine, after)

    def __repr__(self) -> str:
        return f"<repl of {self.machine_name} at {self._door.base_url}>"

    async def __aenter__(self) -> AsyncRepl:
        await self._channel.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """The connection; the machine goes on."""
        await self._channel.close()

    @property
    def position(self) -> int | None:
        """Of the last entry seen: `machine.repl(after=position)` goes on behind it, in another program, too."""
        return self._channel.cursor

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
    ) -> Result:
        """As `machine.run`, over this connection."""
        check_wait(self._door.base_url, self.machine_name)
        instruction = await self.exec(code, timeout_seconds=timeout_seconds, env=env, interrupt=interrupt, functions=functions)
        return await instruction.result(on_stdout=on_stdout, on_stderr=on_stderr, on_display=on_display)

    async def exec(
        self,
        code: str,
        *,
        timeout_seconds: float | None = None,
        env: Mapping[str, str] | None = None,
        interrupt: bool = False,
        functions: Functions | None = None,
    ) -> AsyncInstruction:
        """As `machine.exec`, over this connection. Take its result or its lines before you leave the `with` block, or later from the tape."""
        text = instruction_text(code, timeout_seconds, env, functions)
        key = new_key()
        number: int | None = None

        def ours(entry: Entry) -> bool:
            nonlocal number
            if entry["type"] == "accepted" and entry.get("key") == key:
                number = entry["instruction"]
            return number is not None and entry.get("instruction") == number

        await self._channel.open()
        listener = self._channel.listen(ours)
        try:
            seq = await self._submit(text, interrupt, key)
        except BaseException:
            await listener.close()
            raise
        return AsyncInstruction(self._door, self.machine_name, seq, fresh=True, functions=functions, source=listener)

    async def submit(self, code: str, *, timeout_seconds: float | None = None, interrupt: bool = False, key: str | None = None) -> int:
        """Hands code over and gives its number, for whoever reads `entries()`: there `accepted` has the key, and all that follows the number."""
        return await self._submit(instruction_text(code, timeout_seconds, None, None), interrupt, key or new_key())

    async def _submit(self, text: api.InstructionText, interrupt: bool, key: str) -> int:
        message = {"type": "exec", "key": key, **body_of(api.Exec(instruction=text, interrupt=interrupt or None))}
        return (await self._channel.ask(message, again=True))["instruction_seq"]

    async def stream(self, code: str, *, timeout_seconds: float | None = None, env: Mapping[str, str] | None = None) -> AsyncIterator[Line]:
        """As `machine.stream`, over this connection."""
        check_wait(self._door.base_url, self.machine_name)
        instruction = await self.exec(code, timeout_seconds=timeout_seconds, env=env)
        async with aclosing(instruction.stream()) as lines:
            async for line in lines:
                yield line
        (await instruction.result()).raise_for_error()

    async def interrupt(self, instruction: int | None = None, *, pending: bool = False) -> bool:
        """What runs now, whoever gave it; with `pending` what waits, too; or one instruction by its number. Was there anything?"""
        request = body_of(api.Interrupt(pending=pending or None, instruction=instruction))
        reply = await self._channel.ask({"type": "interrupt", **request}, again=False)
        return bool(reply.get("interrupted"))

    async def complete(self, code: str, cursor: int | None = None) -> api.Completed:
        request = body_of(api.Complete(code=code, cursor=cursor))
        return read(api.Completed, await self._channel.ask({"type": "complete", **request}, again=True))

    async def ping(self) -> None:
        """Is the server there?"""
        await self._channel.ask({"type": "ping"}, again=True)

    def listen(self) -> AsyncListener:
        """As `entries`, from this very moment on, and for whoever wants to go on after an error: `next()`, and at last `close()`."""
        return self._channel.listen(lambda entry: True)

    async def entries(self, *, wait_seconds: float | None = None) -> AsyncIterator[Entry]:
        """Everything on the tape from here on, of all clients. Ends when the machine is deleted."""
        listener = self._channel.listen(lambda entry: True, wait_seconds)
        try:
            while True:
                yield await listener.next()
        except MachineNotFound:
            return
        finally:
            await listener.close()
