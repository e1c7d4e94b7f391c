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
AWAY = "it is interrupted as soon as the server is there again"


class Running:
    def __init__(self, session: Session, keys: Keys) -> None:
        self._session, self._keys = session, keys
        self._key = new_key()
        self._number: int | None = None
        self._presses = 0
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
        for _ in range(self._presses):
            self._interrupt(number)

    def _pressed(self) -> None:
        self._presses += 1
        leaves = self._presses > 2 or (self._presses > 1 and self._number is None)
        if not leaves and self._number is not None:
            self._interrupt(self._number)
        elif leaves and self._task is not None:
            if self._number is None:
                self._session.interrupt_when_accepted(self._key)
            self._task.cancel()

    def _interrupt(self, number: int) -> None:
        """The first is Python's own interrupt. The second insists."""
        self._no_hint()
        sent = self._session.interrupt(number)
        self._hint = asyncio.get_running_loop().create_task(self._tell(sent, INSISTED if self._presses > 1 else HINT))

    async def _tell(self, sent: asyncio.Task[bool], hint: str) -> None:
        """What comes next, to whoever still waits."""
        if not (await asyncio.wait([sent], timeout=HINT_SECONDS))[0]:
            self._session.screen.say(AWAY)
        await asyncio.wait([sent])
        await asyncio.sleep(HINT_SECONDS)
        if sent.result():
            self._session.screen.say(hint)

    def _no_hint(self) -> None:
        if self._hint is not None:
            self._hint.cancel()
