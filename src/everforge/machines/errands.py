"""Errands to the clerks in a guest, as the keeper sees them: short exchanges, each with a deadline, and any number of sleeps in between."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from everforge.wire.errors import EverforgeError, QueueFull, TransferCut
from everforge.wire.files import PIECE_BYTES, Told, error_of
from everforge.wire.messages import FileTold

ERRANDS_MAX = 8  # of one machine at a time; the guest bears twice as many
SLACK_BYTES = 2 * PIECE_BYTES  # over what was asked for; who tells more is no clerk of ours


class Errand:
    """One of them. `allow` says what may come, `heard` waits for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._told: list[FileTold] = []
        self._allowed_bytes = 0
        self._awaited: asyncio.Future[None] | None = None

    def allow(self, size_bytes: int) -> None:
        self._told, self._allowed_bytes = [], size_bytes + SLACK_BYTES

    def hear(self, told: FileTold) -> None:
        self._allowed_bytes -= len(told.body)
        if self._allowed_bytes < 0:
            self.fail(TransferCut("the machine sends more than it was asked for"))
            return
        self._told.append(told)
        self._finish(None)

    def fail(self, error: EverforgeError) -> None:
        self._told = []
        self._finish(error)

    def _finish(self, error: EverforgeError | None) -> None:
        if self._awaited is not None and not self._awaited.done():
            if error is None:
                self._awaited.set_result(None)
            else:
                self._awaited.set_exception(error)
                self._awaited.exception()  # nobody may be waiting any more

    async def heard(self) -> Sequence[FileTold]:
        """What was told since the last time, at least one. Raises what the machine says went wrong."""
        if not self._told:
            self._awaited = asyncio.get_running_loop().create_future()
            await self._awaited
        told, self._told = self._told, []
        for one in told:
            if one.verb == Told.FAILED:
                raise error_of(one.body)
        return told


class Errands:
    """Those of one machine; they outlive its sandboxes."""

    def __init__(self) -> None:
        self._errands: dict[int, Errand] = {}
        # Answers to an earlier server may still be on their way: numbers that it cannot have used.
        self._next = secrets.randbits(48)

    def begin(self) -> Errand:
        if len(self._errands) >= ERRANDS_MAX:
            raise QueueFull(f"{ERRANDS_MAX} file transfers of this machine are under way already; try again when one is done")
        self._next += 1
        errand = self._errands[self._next] = Errand(self._next)
        return errand

    def end(self, errand: Errand) -> None:
        self._errands.pop(errand.number, None)

    def hear(self, told: FileTold) -> None:
        """What nobody waits for any more is let pass."""
        if errand := self._errands.get(told.errand):
            errand.hear(told)

    def cut(self, why: str) -> None:
        """The sandbox is gone: whoever waits for an answer now gets none."""
        for errand in self._errands.values():
            errand.fail(TransferCut(why))
