"""A person at the prompt."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from prompt_toolkit import PromptSession

from everforge import AsyncEverforge
from everforge.wire.errors import EverforgeError

from ..connection import suggesting
from .commands import command_of
from .keys import Keys
from .prompt import ThrownAway, interrupted_behind, is_typing, make_prompt
from .running import Running
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
        with suggesting(name):
            info = await machine.info()
        repl = await undo.enter_async_context(machine.repl())
        screen = Screen(info.name)
        screens.append(screen)
        session = Session(machine, repl, screen, others=others)
        undo.push_async_callback(session.close)
        screen.say(f"{info.name} at {client.base_url} ({info.state}). %help shows what there is; Ctrl-D leaves.")
        prompt = make_prompt(machine, client.base_url)
        keys = Keys(lambda: is_typing(prompt))
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keys.hear)
        await Person(session, prompt, keys, timeout_seconds).work()
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
                    await Running(self._session, self._keys).run(text, self._timeout_seconds)
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
        self._keys.forget()
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
            if interrupted_behind(self._prompt):
                self._keys.hear()
            await self._screen.end_prompt()

    async def _shown(self, act: Any) -> None:
        """A command of the prompt's. Ctrl-C stops waiting for it."""
        task = asyncio.ensure_future(act)
        with self._keys.mean(task.cancel):
            try:
                self._screen.say(await task, "value")
            except asyncio.CancelledError:
                self._screen.say("no longer waited for")
