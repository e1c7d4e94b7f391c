"""The instruction whose turn it is. It is begun, followed to its end or until it waits for its client's program, and its end is told."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from everforge.wire.errors import Refused, SandboxLost, SaveFailed
from everforge.wire.events import Ended, EndKind, Event
from everforge.wire.messages import OUT_OF_MEMORY, End

from .agenda import Agenda, Instruction
from .calls import Calls
from .dossier import Dossier
from .lifecycle import Turn, TurnArrow, turn
from .residency import Residency
from .settings import MachineSettings
from .turn import TurnRun


class Floor:
    def __init__(self, dossier: Dossier, residency: Residency, agenda: Agenda, settings: MachineSettings) -> None:
        self.turn = Turn.IDLE
        self.current: TurnRun | None = None
        self.used_at = 0.0  # monotonic seconds
        self._dossier = dossier
        self._residency = residency
        self._agenda = agenda
        self._settings = settings

    @property
    def waits(self) -> bool:
        """For an answer of the client's program."""
        return self.turn is Turn.WAITING

    # --- beginning -----------------------------------------------------------------------------------------------------------------------

    async def begin(self, instruction: Instruction, begin: Callable[[TurnRun], Awaitable[End | None]], calls: Calls | None = None) -> None:
        incarnation = self._residency.housing.incarnation
        assert incarnation is not None
        if calls is None and instruction.work.functions:
            calls = Calls(instruction.work.functions)
        if calls is not None:
            calls.on_change = self._agenda.changed.set
        run = self.current = TurnRun(incarnation, instruction, self._settings, calls)
        self.turn = turn(self.turn, TurnArrow.TURN_STARTED, self._residency.now)
        await self._follow(run, begin(run))

    def suspend(self, instruction: Instruction, calls: Calls) -> None:
        """One that waits for an answer in the memory of a machine that sleeps."""
        self._agenda.expect(instruction.number)
        calls.on_change = self._agenda.changed.set
        self.current = self._residency.housing.waiting = TurnRun(None, instruction, self._settings, calls)
        self.turn = Turn.WAITING

    # --- going on ------------------------------------------------------------------------------------------------------------------------

    async def go_on(self, run: TurnRun) -> None:
        """With one that waited and has its answers."""
        self.turn = turn(self.turn, TurnArrow.ANSWERED, self._residency.now)
        self._residency.housing.waiting = None
        await self._follow(run, run.go_on())

    async def finish(self, run: TurnRun) -> None:
        """One whose end has come while it waited."""
        await self._follow(run, run.go_on())

    async def _follow(self, run: TurnRun, progress: Awaitable[End | None]) -> None:
        """To its end, or until it waits for an answer."""
        instruction = run.instruction
        waits = False
        try:
            end = await progress
            if end is None:
                waits, self._residency.housing.waiting = True, run
                return
            self._residency.housing.waiting = None
            self._residency.housing.effects = instruction.number
            self._tell_limits(end)
            await self._record_end(run.ended(end, self._dossier.record.notice))
        except SandboxLost:
            return  # the keeper's loop sees that the sandbox is lost, and this instruction ends with the rest
        finally:
            self.turn = turn(self.turn, TurnArrow.CALLED if waits else TurnArrow.TURN_ENDED, self._residency.now)
            self.used_at = time.monotonic()
        self.current = None
        if end.end == "died":
            why = f"the interpreter died in instruction {instruction.number}, and what waited may have counted on its variables"
            await self._residency.end_waiting("cancelled", f"cancelled: {why}", Refused(why))
        if self._dossier.record.history == "each" and self._dossier.record.durability != "each":
            with contextlib.suppress(SaveFailed, SandboxLost):
                await self._residency.keep_history()

    def _tell_limits(self, end: End) -> None:
        """Those that the guest itself holds code to, as far as it says so."""
        record = self._dossier.record
        for limit, met in (("output_bytes_max", end.dropped_bytes > 0), ("memory_mb", OUT_OF_MEMORY in f"{end.error_message} {end.note}")):
            if met:
                self._dossier.signals.tell("limit.hit", account=record.account, machine=record.name, limit=limit)

    # --- ends ----------------------------------------------------------------------------------------------------------------------------

    def interrupt(self, run: TurnRun) -> None:
        if self.waits:
            run.ask_to_stop()  # the machine may be asleep, or just being saved
            self._agenda.changed.set()
        else:
            run.interrupt()

    def let_go(self) -> None:
        """Its end is on the tape, and nobody here waits for it any more."""
        self.current = self._residency.housing.waiting = None
        if self.turn is not Turn.IDLE:
            self.turn = turn(self.turn, TurnArrow.TURN_ENDED, self._residency.now)

    async def end_without_run(self, number: int, end: EndKind, error: str, retry: Any = "never") -> None:
        """Unless breaking down, or an interrupt, has ended it already."""
        if await self._agenda.is_wanted(number):
            self.tell(await self._dossier.write(events=[Ended(instruction=number, end=end, error=error, retry=retry)], step="end"))

    def tell(self, written: Sequence[Event]) -> None:
        for ended in written:
            assert isinstance(ended, Ended)
            self._agenda.tell(ended)

    async def _record_end(self, ended: Ended) -> None:
        """Durable as its machine wants it; only then is it told."""
        housing = self._residency.housing
        assert housing.incarnation is not None
        if self._dossier.record.durability == "each":
            ended = await self._residency.save_with_end(ended)
        else:
            ended = await housing.incarnation.commit_end(ended, set=self._dossier.use())
        self._agenda.tell(ended)
