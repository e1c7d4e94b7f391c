"""Answers of a client's program on their way to the code that waits for them: onto the tape, durably, and only then into the machine."""

from __future__ import annotations

import asyncio
import logging
import time

from everforge.engine.base import Ending, How
from everforge.wire.errors import DiskFull, EverforgeError, NoCapacity, SandboxLost, WakeFailed
from everforge.wire.events import Answered, Position

from .agenda import Agenda
from .calls import Calls
from .dossier import Dossier
from .incarnation import Incarnation
from .lifecycle import Residence
from .residency import Residency
from .settings import MachineSettings

log = logging.getLogger(__name__)


class Answers:
    def __init__(self, dossier: Dossier, residency: Residency, agenda: Agenda, settings: MachineSettings) -> None:
        self.deliver_at = 0.0  # monotonic seconds: no sooner is a machine woken again that could not be woken
        self._dossier = dossier
        self._residency = residency
        self._agenda = agenda
        self._settings = settings

    async def record(self, calls: Calls, answered: Answered) -> None:
        """The first one. Raises WrongState for the others."""
        if (incarnation := self._residency.housing.incarnation) is not None:
            await incarnation.flush()  # the call itself stands before its answer
        calls.claim(answered.call)
        try:
            (written,) = await self._dossier.write(events=[answered], durable=True, step="answered", patient=False)
        except BaseException:
            calls.unclaim(answered.call)
            raise
        calls.answer(answered.call, written.position)

    def due(self, calls: Calls) -> bool:
        """A sleeping machine that no longer waits is woken as well: its memory knows what it lacks."""
        wanted = bool(calls.undelivered) or not (calls.waiting or self._residency.now is Residence.AWAKE)
        return wanted and time.monotonic() >= self.deliver_at

    async def deliver(self, calls: Calls) -> None:
        """What is on the tape, to the code. A machine that cannot be woken for it now is tried again."""
        try:
            await self._residency.ensure_awake()
            incarnation = self._residency.housing.incarnation
            assert incarnation is not None
            for call, position in calls.undelivered:
                await self._send(incarnation, await self._read(position))
                calls.delivered(call)
        except (NoCapacity, WakeFailed, DiskFull) as e:
            log.warning("machine %s has an answer, and could not be woken for it: %s", self._dossier.record.name, e.message)
            self.deliver_at = time.monotonic() + self._settings.save_retry_seconds
            asyncio.get_running_loop().call_later(self._settings.save_retry_seconds, self._agenda.changed.set)
        except EverforgeError:
            return  # it is lost, or broken: the keeper's loop sees that

    async def _send(self, incarnation: Incarnation, answered: Answered) -> None:
        """A guest reads whatever its code does; one that does not is given up, since nothing else could be said to it either."""
        try:
            async with asyncio.timeout(self._settings.guest_answer_seconds):
                await incarnation.answer(answered)
        except TimeoutError:
            error = SandboxLost(f"the guest did not take an answer within {self._settings.guest_answer_seconds:g} s")
            incarnation.lose(Ending(How.EXITED, error.message))
            raise error from None

    async def _read(self, position: Position) -> Answered:
        (found,) = await self._dossier.store.events(self._dossier.record.id, Position(position - 1), 1)
        assert isinstance(found, Answered)
        return found
