"""One prompt's talk with one machine: what it submits, what it hears, through every cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from everforge import AsyncMachine, AsyncRepl
from everforge.wire.errors import EverforgeError, MachineNotFound, Uncertain, Unreachable

from .screen import Screen

AGAIN_SECONDS = 3.0  # between tries, once the SDK has given up
QUIET_SECONDS = 0.8  # nobody wants to read of a wake that is over before that
_WAKING = "waking the machine..."
WAITS = {"creating": "the machine is being made...", "hibernating": _WAKING, "asleep": _WAKING, "waking": _WAKING}  # by state

Entry = dict[str, Any]


class Session:
    """What others do on the machine is heard, too, and shown on demand. Background output belongs to everybody."""

    def __init__(self, machine: AsyncMachine, repl: AsyncRepl, screen: Screen, *, others: bool = False) -> None:
        self.machine, self.screen = machine, screen
        self._repl, self._others = repl, others
        self._submitted: dict[str, asyncio.Future[Entry]] = {}  # their ends, by key until their acceptance is seen
        self._ours: dict[int, asyncio.Future[Entry]] = {}  # and then by number
        self._unwanted: set[str] = set()  # keys of those that are to be interrupted as soon as they have a number
        self._interrupts: set[asyncio.Task[bool]] = set()
        self._heard = asyncio.Event()  # something of what is waited for
        self._listener = repl.listen()
        self.failed: asyncio.Future[EverforgeError] = asyncio.get_running_loop().create_future()
        self._pump = asyncio.get_running_loop().create_task(self._listen())

    async def close(self) -> None:
        tasks: list[asyncio.Task[Any]] = [self._pump, *self._interrupts]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await self._listener.close()

    # --- hearing ---------------------------------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            try:
                self._take(await self._listener.next())
            except (Unreachable, Uncertain):
                await asyncio.sleep(AGAIN_SECONDS)  # it may take its time; whoever is tired of waiting leaves
            except EverforgeError as error:
                self.failed.set_result(error)
                return

    def _take(self, entry: Entry) -> None:
        number, kind = entry.get("instruction"), entry["type"]
        if kind == "accepted" and entry.get("key") in self._submitted:
            self._ours[entry["instruction"]] = self._submitted.pop(entry["key"])
            if entry["key"] in self._unwanted:
                self.interrupt(entry["instruction"])
            return
        ours = number in self._ours
        if kind in ("moved", "lost"):
            self._moved(entry)
        elif ours or self._others or (number is None and kind in ("output", "displayed")):
            self.screen.show(entry)
        if ours and number is not None:
            self._heard.set()
            if kind == "ended":
                self._ours.pop(number).set_result(entry)

    def _moved(self, entry: Entry) -> None:
        if entry["type"] == "lost" or entry.get("event") in ("rollback_started", "reset_started"):
            self.screen.show(entry)
        elif entry.get("residence") == "awake":
            self.screen.wait_for(None)

    # --- running ---------------------------------------------------------------------------------------------------------------------------

    async def run(self, code: str, timeout_seconds: float | None, key: str, accepted: Callable[[int], None]) -> Entry:
        """Its end. Whoever cancels this has stopped waiting; the instruction goes on, and is shown."""
        ended = self._submitted[key] = asyncio.get_running_loop().create_future()
        self._heard.clear()
        accepted(await self._first(self._repl.submit(code, timeout_seconds=timeout_seconds, key=key)))
        waker = asyncio.get_running_loop().create_task(self._tell_if_waking())
        try:
            return await self._first(asyncio.shield(ended))
        finally:
            waker.cancel()
            self.screen.wait_for(None)

    async def _first(self, wanted: Any) -> Any:
        """What is wanted, unless there is no use in waiting for it any more."""
        task = asyncio.ensure_future(wanted)
        try:
            await asyncio.wait([task, self.failed], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise self.failed.result()
            return task.result()
        finally:
            task.cancel()

    async def _tell_if_waking(self) -> None:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await self._heard.wait()
        except TimeoutError:
            try:
                state = (await self.machine.info()).state
            except EverforgeError:
                return  # whoever waits hears of it
            if state in WAITS and not self._heard.is_set():
                self.screen.wait_for(WAITS[state])

    # --- interrupting ----------------------------------------------------------------------------------------------------------------------

    def interrupt(self, number: int) -> asyncio.Task[bool]:
        """In its own time: while the server is away it is waited for. Was it heard? Once more for the same instruction insists."""
        task = asyncio.get_running_loop().create_task(self._interrupt(number))
        self._interrupts.add(task)
        task.add_done_callback(self._interrupts.discard)
        return task

    def interrupt_when_accepted(self, key: str) -> None:
        self._unwanted.add(key)

    async def _interrupt(self, number: int) -> bool:
        while True:
            try:
                await self.machine.instruction(number).interrupt()
                return True
            except Unreachable:  # nobody has heard it
                await asyncio.sleep(AGAIN_SECONDS)
            except Uncertain:  # not again: for one who has heard it, that would be to insist
                return True
            except EverforgeError as error:
                self.screen.say(f"not interrupted: {error.message}")
                return False


def gone(error: EverforgeError) -> bool:
    return isinstance(error, MachineNotFound)
