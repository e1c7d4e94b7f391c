"""An instruction that waits for its client's program. Meanwhile the machine may sleep and be saved, and operations are done; instructions behind it
wait.

The keeper asks at each of its steps what can be done about the wait, and does what else there is when that is nothing.
"""

from __future__ import annotations

import time

from .agenda import Agenda
from .answers import Answers
from .floor import Floor
from .lifecycle import Residence
from .residency import Residency
from .turn import TurnRun


class Waiting:
    def __init__(self, floor: Floor, residency: Residency, agenda: Agenda, answers: Answers) -> None:
        self._floor = floor
        self._residency = residency
        self._agenda = agenda
        self._answers = answers

    def has_news(self) -> bool:
        """Does an instruction that waited no longer wait, or is its answer there?"""
        run = self._floor.current
        return run is not None and run.calls is not None and (run.is_over or bool(run.calls.undelivered) or not run.calls.waiting)

    async def step(self, *, stopping: bool) -> bool:
        """False when there was nothing to do about it. While the server is `stopping`, nobody is woken for an answer."""
        run = self._floor.current
        assert run is not None
        assert run.calls is not None
        if not self._agenda.awaits(run.instruction.number):
            self._floor.let_go()  # rolled back, reset or broken
        elif run.is_over:
            await self._floor.finish(run)
        elif run.is_asked_to_stop:
            await self._stop(run)
        elif self._answers.due(run.calls) and not stopping:
            await self._answers.deliver(run.calls)
            self._floor.used_at = time.monotonic()
        elif not run.calls.waiting and self._residency.now is Residence.AWAKE:
            await self._floor.go_on(run)
        else:
            return False
        return True

    async def _stop(self, run: TurnRun) -> None:
        """An instruction in a sleeping machine is not woken to be told: it is let go of when the machine wakes."""
        if self._residency.now is Residence.AWAKE:
            await run.stop_waiting()
        else:
            await self._floor.end_without_run(run.instruction.number, "interrupted", "KeyboardInterrupt: interrupted while the machine slept")
            self._floor.let_go()

    async def hibernate(self) -> bool:
        """True when the machine sleeps afterwards. An instruction that waited and has just ended gets its end first; one that was just answered goes
        on."""
        slept = await self._residency.hibernate(self.has_news)
        run = self._floor.current
        if slept or run is None or not run.is_over:
            return slept
        await self._floor.finish(run)
        return await self._residency.hibernate()
