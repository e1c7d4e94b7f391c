"""One instruction of the person's at the prompt, and what Ctrl-C means while it runs: interrupt it, insist, stop waiting."""

from __future__ import annotations

import asyncio
from typing import Any

from everforge.client._async.door import new_key

from ..failures import LONGER
from .keys import Keys
from .session import Session

HINT_SECONDS = 0.8  # most code ends sooner, and needs no word about it
HINT = "interrupted, and it still runs; Ctrl-C again kills it, with the machine's variables"
INSISTED = "it is being killed; Ctrl-C again stops waiting for that"
AWAY = "it is interrupted as soon as the server is there again; Ctrl-C again stops waiting for it"
REFUSED = "Ctrl-C again stops waiting for it"


class Running:
    def __init__(self, session: Session, keys: Keys) -> None:
        self._session, self._keys = session, keys
        self._key = new_key()
        self._number: int | None = None
        self._presses = 0
        self._told: str | None = None  # what the next one means
        self._task: asyncio.Task[Any] | None = None
        self._hint: asyncio.Task[None] | None = None

    async def run(self, code: str, timeout_seconds: float | None) -> None:
        self._task = asyncio.ensure_future(self._session.run(code, timeout_seconds, self._key, self._accepted))
        with self._keys.mean(self._pressed):
            try:
                ended = await self._task
                if ended["end"] == "timed_out":
                    self._session.screen.say(LONGER)
            except asyncio.CancelledError:
                known = "what was typed may not have been heard" if self._number is None else f"instruction {self._number} goes on"
                self._session.screen.say(f"no longer waited for: {known}")
            finally:
                self._no_hint()

    def _accepted(self, number: int) -> None:
        self._number = number
        if self._presses:
            self._interrupt(number)

    def _pressed(self) -> None:
        """What a key means is said before: keys that are pressed faster than that mean nothing more."""
        if self._presses and self._number is not None and self._told is None:
            return
        self._presses += 1
        if self._number is None:
            if self._presses > 1:
                self._session.interrupt_when_accepted(self._key)
                self._leave()
        elif self._presses == 1 or self._told == HINT:
            self._interrupt(self._number)
        else:
            self._leave()

    def _leave(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _interrupt(self, number: int) -> None:
        """The first is Python's own interrupt. The second insists."""
        self._no_hint()
        next_told, self._told = (INSISTED if self._told == HINT else HINT), None
        sent = self._session.interrupt(number)
        self._hint = asyncio.get_running_loop().create_task(self._tell(sent, next_told))

    async def _tell(self, sent: asyncio.Task[bool], hint: str) -> None:
        """What comes next, to whoever still waits."""
        if not (await asyncio.wait([sent], timeout=HINT_SECONDS))[0]:
            self._say(AWAY)
        await asyncio.wait([sent])
        await asyncio.sleep(HINT_SECONDS)
        self._say(hint if sent.result() else REFUSED)

    def _say(self, hint: str) -> None:
        self._told = hint
        self._session.screen.say(hint)

    def _no_hint(self) -> None:
        if self._hint is not None:
            self._hint.cancel()
