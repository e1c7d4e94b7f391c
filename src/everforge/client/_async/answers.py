"""Calls that code in a machine makes to functions of this program, and their way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everforge.wire import api
from everforge.wire.errors import Forbidden, Refused, Unauthenticated, WrongState

from ..answering import answering
from ..functions import raised, refused, returned
from ..results import Call
from .door import AsyncDoor
from .transport import call


class AsyncAnswers:
    """Of one instruction. A function is called once for each call: an answer that could not be sent is kept, and sent when there is a next time."""

    def __init__(self, door: AsyncDoor, machine: str, instruction: int) -> None:
        self._door, self._machine, self._instruction = door, machine, instruction
        self._kept: dict[int, api.Answer] = {}  # by the call's number

    async def answer(self, asked: Call, function: Callable[..., Any]) -> None:
        """Runs the function here and tells the machine. What it raises is raised in the machine."""
        if asked.number not in self._kept:
            self._kept[asked.number] = await self._find(asked, function)
        try:
            await self._tell(asked, self._kept[asked.number])
        except (Unauthenticated, Forbidden):
            raise  # no other answer would be taken either
        except Refused as e:
            self._kept[asked.number] = refused(asked.function, e.message)
            await self._tell(asked, self._kept[asked.number])
        del self._kept[asked.number]

    async def _find(self, asked: Call, function: Callable[..., Any]) -> api.Answer:
        with answering(self._door.base_url, self._machine, self._instruction):
            try:
                return returned(asked.function, await call(function, *asked.args, **asked.kwargs))
            except Exception as e:
                return raised(e)

    async def _tell(self, asked: Call, answer: api.Answer) -> None:
        path = f"/machine/{self._machine}/exec/{self._instruction}/calls/{asked.number}"
        try:
            # It is answered once, whoever answers first: asking again is safe.
            await self._door.post(api.Answered, path, answer, again=True)
        except WrongState:
            pass  # answered already: by another client, by our own cut request, or it is no longer waited for
        except Refused as e:
            if e.http_status != 404:  # the instruction has ended meanwhile
                raise
