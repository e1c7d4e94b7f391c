# Made from _async/tape.py by tools/make_sync.py; change it there.
"""A machine's tape: pages of what is there, and a reader that follows it through every cut."""

from __future__ import annotations

from collections.abc import Iterator
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
from .door import SILENCE_SECONDS, Door
from .transport import Answer, sleep

Entry = dict[str, Any]
LINE_BYTES_MAX = 64 * 1024 * 1024  # an entry is far shorter
RECONNECT_SECONDS = 120.0  # how long a server may be gone before a reader gives up
NDJSON = {"Accept": "application/x-ndjson"}


def pages(door: Door, path: str, after: int, instruction: int | None = None, deadline: Deadline | None = None) -> Iterator[Entry]:
    """What is on the tape now."""
    while True:
        page = door.get(api.Tape, path, {"after": after, "instruction": instruction}, deadline)
        for found in page.entries:
            known = checked(found)
            if known is not None:
                yield known
        if not page.more or page.position <= after:
            return
        after = page.position


class TapeReader:
    """Every entry behind `after`, once and in order; goes on from the last one after a cut or a restart of the server. Ends with the machine.

    With `instruction` only what belongs to it; the server ends that stream behind its end, and so the connection can be used again."""

    def __init__(self, door: Door, path: str, after: int, deadline: Deadline | None = None, instruction: int | None = None) -> None:
        self._door, self._path = door, path
        self.cursor = after
        self._instruction = instruction
        self.deadline = deadline or Deadline(None)
        self._patience = Patience(RECONNECT_SECONDS)
        self._answer: Answer | None = None
        self._rest = b""  # the beginning of a line whose end has not come
        self._lines: list[bytes] = []  # whole ones, the last first

    def __iter__(self) -> TapeReader:
        return self

    def __next__(self) -> Entry:
        try:
            return self.next()
        except MachineNotFound:  # it was deleted, and what it last had to say has been read
            raise StopIteration from None

    def next(self) -> Entry:
        """MachineNotFound when the machine is gone."""
        while True:
            while self._lines:
                found = self._take(self._lines.pop())
                if found is not None:
                    return found
            if self.deadline.passed:
                raise StillRunning(say("nothing_came"))
            try:
                self._read_on()
            except EverforgeError as e:
                if not self._door.may_ask_again(e, again=True):
                    raise
                self._pause(e)

    def _take(self, line: bytes) -> Entry | None:
        if not line.strip():
            return None  # only a sign of life
        found = checked(parse(line))
        fresh = None if found is None else behind(found, self.cursor)
        if fresh is None:
            return None
        self.cursor = fresh["cursor"]
        return fresh

    def _read_on(self) -> None:
        answer = self._answer or self._open()
        with self._door.cuts("GET"):
            chunk = answer.chunk()
            if not chunk:
                raise Cut("the server ended the stream")
        self._patience.renew()  # a sign of life will do
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise ProtocolError(f"an entry of the tape is longer than {LINE_BYTES_MAX} bytes")
        self._lines = whole[::-1]

    def _open(self) -> Answer:
        url = self._door.url(self._path, {"after": self.cursor, "follow": True, "instruction": self._instruction})
        self._answer = self._door.send("GET", url, NDJSON, None, self.deadline.within(SILENCE_SECONDS))
        if self.deadline.left is not None:
            self._answer.end_after(self.deadline.left)
        self._door.tell(connected=True)
        self._rest = b""
        return self._answer

    def _pause(self, error: EverforgeError) -> None:
        """Before the next connection."""
        self.close()
        if self.deadline.passed:
            return  # which has cut it
        self._door.tell(connected=False)
        pause = self._patience.pause(error.retry_after_seconds)
        if pause is None:
            raise error
        sleep(self.deadline.within(pause))

    def close(self) -> None:
        """Twice is fine. Reading on afterwards opens it again."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.close()

    def finish(self) -> None:
        """After the last entry of an instruction: the server ends the stream, and the connection can be used again."""
        with suppress(EverforgeError), self._door.cuts("GET"):
            if self._answer is not None:
                self._answer.chunk()
        self.close()

    def __enter__(self) -> TapeReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
