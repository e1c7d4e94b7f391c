"""A person at the prompt."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from prompt_toolkit import PromptSession

from everforge import AsyncEverforge
from everforge.wire.errors import EverforgeError

from ..failures import LONGER
from .commands import command_of
from .prompt import ThrownAway, make_prompt
from .screen import Screen
from .session import Session, gone


async def talk(name: str | None, timeout_seconds: float | None, tags: Mapping[str, str], *, others: bool) -> None:
    screens: list[Screen] = []  # there is none before there is a connection

    def tell(connected: bool) -> None:
        for screen in screens:
            screen.say("connected again" if connected else "connection lost, reconnecting...")

    async with AsyncExitStack() as undo:
        client = await undo.enter_async_context(AsyncEverforge(on_connection=tell))
        machine = await client.create(tags=tags) if name is None else client.machine(name)
        info = await machine.info()
        repl = await undo.enter_async_context(machine.repl())
        screen = Screen(info.name)
        screens.append(screen)
        session = Session(machine, repl, screen, others=others)
        undo.push_async_callback(session.close)
        screen.say(f"{info.name} at {client.base_url} ({info.state}). %help shows what there is; Ctrl-D leaves.")
        keys = Keys()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keys.hear)
        await Person(session, make_prompt(machine, client.base_url), keys, timeout_seconds).work()
        screen.say(f"{info.name} stays as it is: `everforge repl {info.name}` goes on here.")


class Person:
    def __init__(self, session: Session, prompt: PromptSession[str], keys: Keys, timeout_seconds: float | None) -> None:
        self._session, self._prompt, self._keys, self._timeout_seconds = session, prompt, keys, timeout_seconds
        self._screen = session.screen

    async def work(self) -> None:
        while True:
            try:
                text = await self._typed()
            except EOFError:
                return
            if text is None or not text.strip():
                continue
            found = command_of(text)
            try:
                if found is None:
                    await _Running(self._session, self._keys).run(text, self._timeout_seconds)
                else:
                    act, word = found
                    await self._shown(act(self._session.machine, word))
            except EverforgeError as error:
                if gone(error) or self._session.failed.done():
                    raise
                self._screen.say(f"everforge: {error.message}", "error")

    async def _typed(self) -> str | None:
        """None when it was thrown away with Ctrl-C. What ends the session ends the prompt."""
        self._screen.begin_prompt()
        typing = asyncio.ensure_future(self._prompt.prompt_async(handle_sigint=False))
        try:
            await asyncio.wait([typing, self._session.failed], return_when=asyncio.FIRST_COMPLETED)
            if not typing.done():
                raise self._session.failed.result()
            return typing.result()
        except ThrownAway:
            return None
        finally:
            if not typing.done():
                typing.cancel()
                await asyncio.wait([typing])
            await self._screen.end_prompt()

    async def _shown(self, act: Any) -> None:
        """A command of the prompt's. Ctrl-C stops waiting for it."""
        task = asyncio.ensure_future(act)
        with self._keys.mean(task.cancel):
            try:
                self._screen.say(await task, "value")
            except asyncio.CancelledError:
                self._screen.say("no longer waited for")


class _Running:
    """One instruction, and what Ctrl-C means while it runs."""

    def __init__(self, session: Session, keys: Keys) -> None:
        self._session, self._keys = session, keys
        self._number: int | None = None
        self._presses = 0
        self._task: asyncio.Task[Any] | None = None
        self._asked: set[asyncio.Task[None]] = set()

    async def run(self, code: str, timeout_seconds: float | None) -> None:
        self._task = asyncio.ensure_future(self._session.run(code, timeout_seconds, self._accepted))
        with self._keys.mean(self._pressed):
            try:
                ended = await self._task
                if ended["end"] == "timed_out":
                    self._session.screen.say(LONGER)
            except asyncio.CancelledError:
                known = "what was typed may not have been heard" if self._number is None else f"instruction {self._number} goes on"
                self._session.screen.say(f"no longer waited for: {known}")

    def _accepted(self, number: int) -> None:
        self._number = number
        if self._presses:
            self._start(self._interrupt(number))

    def _pressed(self) -> None:
        self._presses += 1
        if self._presses > 1 and self._task is not None:
            self._task.cancel()
        elif self._number is not None:
            self._start(self._interrupt(self._number))

    async def _interrupt(self, number: int) -> None:
        refused = await self._session.interrupt(number)
        if refused is not None:
            self._session.screen.say(f"not interrupted: {refused}; Ctrl-C again stops waiting")

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)


class Keys:
    """Ctrl-C while the prompt is not there; at the prompt it is a key as others. Taken for the whole session, so that there is no moment in which
    it would end the program."""

    def __init__(self) -> None:
        self._pressed: list[Callable[[], object]] = []

    def hear(self) -> None:
        if self._pressed:
            self._pressed[-1]()

    @contextmanager
    def mean(self, pressed: Callable[[], object]) -> Generator[None]:
        self._pressed.append(pressed)
        try:
            yield
        finally:
            self._pressed.pop()
