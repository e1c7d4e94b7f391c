"""A machine's tape: pages of what is there, and a reader that follows it through every cut."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Any

from everforge.wire import api
from everforge.wire.errors import EverforgeError, MachineNotFound, ProtocolError, StillRunning
from everforge.wire.sentences import say

from ..decoding import entry as checked
from ..decoding import parse
from ..failures import Cut
from ..pauses import Deadline, Patience
from ..results import behind
from .door import SILENCE_SECONDS, AsyncDoor
from .transport import AsyncAnswer, sleep

Entry = dict[str, Any]
LINE_BYTES_MAX = 64 * 1024 * 1024  # an entry is far shorter
RECONNECT_SECONDS = 120.0  # how long a server may be gone before a reader gives up
NDJSON = {"Accept": "application/x-ndjson"}


async def pages(door: AsyncDoor, path: str, after: int, instruction: int | None = None, deadline: Deadline | None = None) -> AsyncIterator[Entry]:
    """What is on the tape now."""
    while True:
        page = await door.get(api.Tape, path, {"after": after, "instruction": instruction}, deadline)
        for found in page.entries:
            known = checked(found)
            if known is not None:
                yield known
        if not page.more or page.position <= after:
            return
        after = page.position


class AsyncTapeReader:
    """Every entry behind `after`, once and in order; goes on from the last one after a cut or a restart of the server. Ends with the machine.

    With `instruction` only what belongs to it; the server ends that stream behind its end, and so the connection can be used again."""

    def __init__(self, door: AsyncDoor, path: str, after: int, deadline: Deadline | None = None, instruction: int | None = None) -> None:
        self._door, self._path = door, path
        self.cursor = after
        self._instruction = instruction
        self.deadline = deadline or Deadline(None)
        self._patience = Patience(RECONNECT_SECONDS)
        self._answer: AsyncAnswer | None = None
        self._rest = b""  # the beginning of a line whose end has not come
        self._lines: list[bytes] = []  # whole ones, the last first

    def __aiter__(self) -> AsyncTapeReader:
        return self

    async def __anext__(self) -> Entry:
        try:
            return await self.next()
        except MachineNotFound:  # it was deleted, and what it last had to say has been read
            raise StopAsyncIteration from None

    async def next(self) -> Entry:
        """MachineNotFound when the machine is gone."""
        while True:
            while self._lines:
                found = self._take(self._lines.pop())
                if found is not None:
                    return found
            if self.deadline.passed:
                raise StillRunning(say("nothing_came"))
            try:
                await self._read_on()
            except EverforgeError as e:
                if not self._door.may_ask_again(e, again=True):
                    raise
                await self._pause(e)

    def _take(self, line: bytes) -> Entry | None:
        if not line.strip():
            return None  # only a sign of life
        found = checked(parse(line))
        fresh = None if found is None else behind(found, self.cursor)
        if fresh is None:
            return None
        self.cursor = fresh["cursor"]
        return fresh

    async def _read_on(self) -> None:
        answer = self._answer or await self._open()
        with self._door.cuts("GET"):
            chunk = await answer.chunk()
            if not chunk:
                raise Cut("the server ended the stream")
        self._patience.renew()  # a sign of life will do
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise ProtocolError(f"an entry of the tape is longer than {LINE_BYTES_MAX} bytes")
        self._lines = whole[::-1]

    async def _open(self) -> AsyncAnswer:
        url = self._door.url(self._path, {"after": self.cursor, "follow": True, "instruction": self._instruction})
        self._answer = await self._door.send("GET", url, NDJSON, None, self.deadline.within(SILENCE_SECONDS))
        if self.deadline.left is not None:
            self._answer.end_after(self.deadline.left)
        self._door.tell(connected=True)
        self._rest = b""
        return self._answer

    async def _pause(self, error: EverforgeError) -> None:
        """Before the next connection."""
        await self.close()
        if self.deadline.passed:
            return  # which has cut it
        self._door.tell(connected=False)
        pause = self._patience.pause(error.retry_after_seconds)
        if pause is None:
            raise error
        await sleep(self.deadline.within(pause))

    async def close(self) -> None:
        """Twice is fine. Reading on afterwards opens it again."""
        answer, self._answer = self._answer, None
        if answer is not None:
            await answer.close()

    async def finish(self) -> None:
        """After the last entry of an instruction: the server ends the stream, and the connection can be used again."""
        with suppress(EverforgeError), self._door.cuts("GET"):
            if self._answer is not None:
                await self._answer.chunk()
        await self.close()

    async def __aenter__(self) -> AsyncTapeReader:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
