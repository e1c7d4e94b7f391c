"""The one task that owns a machine in memory and does everything done to it, in order.

Callers put things on its agenda and wait; nothing else touches the machine's sandbox or residence. A keeper retires when its machine sleeps (or is
broken or deleted) and nothing waits: a sleeping machine costs storage only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from everforge.store.threads import to_its_end
from everforge.wire.errors import (
    DiskFull,
    EverforgeError,
    InstructionNotFound,
    NoCapacity,
    QuotaExceeded,
    Refused,
    SandboxLost,
    SaveFailed,
    Uncertain,
    WakeFailed,
    WrongState,
)
from everforge.wire.events import Answered, Ended
from everforge.wire.ids import MachineId
from everforge.wire.messages import End

from .agenda import Agenda, Instruction, Operation, Work
from .answers import Answers
from .calls import Calls
from .dossier import Dossier
from .floor import Floor
from .incarnation import Incarnation
from .intake import Intake
from .lifecycle import Residence, Turn
from .residency import Residency
from .settings import MachineSettings
from .waiting import Waiting

T = TypeVar("T")
BETWEEN_STEPS = frozenset({Residence.CREATING, Residence.AWAKE, Residence.ASLEEP, Residence.BROKEN, Residence.DELETED})
HOUSED = frozenset({Residence.AWAKE, Residence.SAVING, Residence.HIBERNATING})  # in a sandbox, with a guest that has got its `go`
GUEST_TOO_OLD = "the guest in this machine's memory is of an earlier version, which cannot do that; reset the machine, or create a new one"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn that an earlier server started, found alive."""

    instruction: Instruction
    ran_seconds: float
    end: asyncio.Future[End]
    calls: Calls | None = None


class Keeper:
    def __init__(self, dossier: Dossier, residency: Residency, agenda: Agenda, settings: MachineSettings) -> None:
        self.dossier = dossier
        self.residency = residency
        self.retired: Callable[[], None] = lambda: None
        dossier.on_stuck = agenda.tell_stuck
        self._agenda = agenda
        self._settings = settings
        self._intake = Intake(dossier, residency, agenda)
        self._floor = Floor(dossier, residency, agenda, settings)
        self.answers = Answers(dossier, residency, agenda, settings)
        self._waiting = Waiting(self._floor, residency, agenda, self.answers)
        self._inherited: RunningTurn | None = None
        self._pins = 0
        self._visitors = 0  # who talk with the guest beside its instructions, or wait for that
        self._settling = False  # the server is stopping: what has not begun is left to the next one
        self.failed = False
        self.expected: int | None = None  # an instruction that the guest had taken when its machine was taken over
        self._seen_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    # --- what others see -----------------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> MachineId:
        return self.dossier.record.id

    @property
    def turn(self) -> Turn:
        return self._floor.turn

    @property
    def idle_since(self) -> float | None:
        quiet = self.residency.now is Residence.AWAKE and self.turn is not Turn.RUNNING and self._agenda.empty and not self._wanted
        return self._active_at if quiet else None

    @property
    def _wanted(self) -> bool:
        if self.waits:  # instructions behind the one that waits cannot run now
            return bool(self._visitors) or self._waiting.has_news() or isinstance(self._agenda.first, Operation)
        return bool(self._visitors) or not self._agenda.empty

    @property
    def waits(self) -> bool:
        """For an answer of the client's program."""
        return self._floor.waits

    @property
    def guest_answer_seconds(self) -> float:
        return self._settings.guest_answer_seconds

    @property
    def pending(self) -> int:
        """Instructions accepted and not ended."""
        return len(self._agenda.unended)

    @contextmanager
    def pinned(self) -> Generator[None]:
        """Does not retire meanwhile."""
        self._pins += 1
        try:
            yield
        finally:
            self._pins -= 1
            if not self._pins and self._may_retire():
                self._agenda.changed.set()

    def look_again(self) -> None:
        """The record was changed from outside: it may be time to sleep already."""
        self._agenda.changed.set()

    # --- doors ---------------------------------------------------------------------------------------------------------------------------

    def start(self, inherited: RunningTurn | None = None) -> None:
        if inherited is not None:
            self._inherited = inherited
        self._task = asyncio.get_running_loop().create_task(self._live(), name=f"keeper {self.dossier.record.name}")

    def enqueue(self, instruction: Instruction) -> None:
        """One that is on the tape already: accepted by an earlier server."""
        self._agenda.put(instruction)

    def expect(self, instruction: Instruction) -> None:
        """One that the guest has taken already: only its end is missing."""
        self.expected = instruction.number
        self._agenda.expect(instruction.number)

    def suspend(self, instruction: Instruction, calls: Calls) -> None:
        """One that waits for an answer in the memory of a machine that sleeps. Its keeper stays: who asks is told the truth about it."""
        self._floor.suspend(instruction, calls)

    async def accept(self, work: Work, key: str | None, *, interrupt: bool = False) -> tuple[int, bool]:
        """Onto the tape, and only then a number. Legal while the machine is still being created, saved or woken.

        With `interrupt` it ends what was given before it; True when there was something. One that is refused, or known by its key, ends nothing.
        A caller that goes away does not stop it half way: what is on the tape must be on the agenda too.
        """
        with self.pinned():
            return await to_its_end(self._accept(work, key, interrupt=interrupt))

    async def _accept(self, work: Work, key: str | None, *, interrupt: bool) -> tuple[int, bool]:
        number, is_new = await self._intake.take(work, key)
        return number, interrupt and is_new and await self._interrupt_all([n for n in self._agenda.unended if n < number])

    async def answer(self, answered: Answered) -> None:
        """Onto the tape, durably, and only then to the code that waits for it. Raises WrongState for all but the first."""
        with self.pinned():
            await to_its_end(self._answer(answered))

    async def _answer(self, answered: Answered) -> None:
        await self.answers.record(await self._calls_of(answered.instruction), answered)

    async def _calls_of(self, number: int) -> Calls:
        turn = self._floor.current or self._inherited
        if turn is not None and turn.instruction.number == number and turn.calls is not None and not self._agenda.closed:
            return turn.calls
        found = await self.dossier.store.instruction(self.id, number)
        if found is None:
            raise InstructionNotFound(f"machine {self.dossier.record.name} has no instruction {number}")
        raise WrongState(f"instruction {number} of {self.dossier.record.name} waits for no answer" + (": it has ended" if found[1] else ""))

    async def end_of(self, number: int) -> Ended:
        """Waits for the end of an instruction; any number of callers."""
        if end := self._agenda.end(number):
            return await end
        found = await self.dossier.store.instruction(self.id, number)
        if found is None:
            raise InstructionNotFound(f"machine {self.dossier.record.name} has no instruction {number}")
        if not isinstance(found[1], Ended):
            raise Uncertain(f"instruction {number} has no end on the tape yet; ask again", position=found[0].position)
        return found[1]

    def check_recordable(self, number: int) -> None:
        """Raises DiskFull when the end of this instruction, or what comes before it, has been waiting for room for long."""
        if self.dossier.stuck is not None and self._agenda.awaits(number):
            raise self.dossier.stuck

    async def operate(self, name: str, act: Callable[[], Awaitable[T]]) -> T:
        """Do something in its place among the instructions."""
        with self.pinned():
            return await self._put(name, act).done

    async def discard(self, name: str, act: Callable[[], Awaitable[T]]) -> T:
        """As `operate`, for what gives up the state that is there now. On a full disk that is destroyed first: what stands before this on the agenda
        may be waiting for the very room that it takes."""
        with self.pinned():
            there_now = self.residency.housing.incarnation
            doing = asyncio.ensure_future(self.operate(name, act))
            full = asyncio.ensure_future(self.dossier.waits_for_room.wait())
            try:
                await asyncio.wait([doing, full], return_when=asyncio.FIRST_COMPLETED)
                if not doing.done() and self.residency.housing.incarnation is there_now:  # otherwise it is under way, in what comes next
                    await to_its_end(self.residency.housing.give_up())
                try:
                    return await doing
                except SandboxLost:  # it had not begun, and was taken off the agenda with everything else
                    return await self.operate(name, act)
            finally:
                doing.cancel()
                full.cancel()

    def _put(self, name: str, act: Callable[[], Awaitable[Any]], *, first: bool = False) -> Operation:
        if self._agenda.closed:
            raise Uncertain(f"{name} was not begun: the machine's keeper is gone; try again", position=None)
        self._agenda.check_room()
        operation = Operation(name, act)
        if first:
            self._agenda.put_first(operation)
        else:
            self._agenda.put(operation)
        return operation

    @property
    def running(self) -> int | None:
        """The instruction whose turn it is."""
        current = self._floor.current
        return current.instruction.number if current else None

    async def interrupt(self, *, pending: bool) -> bool:
        """End the running instruction, and those waiting if asked. True when there was something."""
        if pending:
            return await to_its_end(self._interrupt_all(self._agenda.unended))
        if (current := self._floor.current) is not None:
            self._floor.interrupt(current)
        return current is not None

    async def interrupt_one(self, number: int) -> bool:
        """True when it had not ended."""
        return self._agenda.awaits(number) and await to_its_end(self._interrupt_all([number]))

    async def _interrupt_all(self, numbers: Sequence[int]) -> bool:
        """Those that have not begun have their ends on the tape when it returns: whatever happens to the server then, they do not run."""
        current = self._floor.current
        begun = {turn.instruction.number for turn in (current, self._inherited) if turn is not None} | {self.expected}
        if current is not None and current.instruction.number in numbers:
            self._floor.interrupt(current)
        if waiting := [number for number in numbers if number not in begun]:
            self._agenda.pull_out(waiting)
            try:
                ends = [Ended(instruction=number, end="interrupted", error="interrupted before it ran") for number in waiting]
                with self.pinned():
                    self._floor.tell(await self.dossier.write(events=ends, step="end"))
            finally:
                self._agenda.put_back(waiting)
        return bool(numbers)

    @asynccontextmanager
    async def at_hand(self) -> AsyncGenerator[Incarnation]:
        """The machine awake, and not saved meanwhile: for one short exchange with its guest, beside whatever runs in it. A sleeping one is woken."""
        with self.pinned():
            self._visitors += 1
            try:
                incarnation = await self._reach()
                try:
                    yield incarnation
                finally:
                    incarnation.gate.leave()
            finally:
                self._visitors -= 1
                self._seen_at = time.monotonic()
                self._agenda.changed.set()

    async def _reach(self) -> Incarnation:
        wake: Operation | None = None
        while True:
            if self._agenda.closed or self._settling:
                raise Uncertain("nobody looks after the machine at the moment: the server is stopping, or about to; try again", position=None)
            moved = self.dossier.next_move()
            incarnation = self.residency.housing.incarnation
            if self.residency.now in HOUSED and incarnation is not None:
                if await incarnation.gate.enter():
                    return incarnation
            elif wake is None:
                await self.residency.check_accepting()
                wake = self._put("wake", self.residency.ensure_awake, first=self.waits)
            # Instructions that stand before it may wake the machine as well, and then run for long.
            await _first([*([wake.done] if wake else []), asyncio.ensure_future(moved.wait())])
            if wake is not None and wake.done.done():
                wake.done.result()
                wake = None

    async def make_room(self) -> bool:
        if self.idle_since is None:
            return False
        try:
            return await self.operate("make room", lambda: self.residency.hibernate(lambda: self._wanted))
        except EverforgeError:
            return False

    # --- ends ----------------------------------------------------------------------------------------------------------------------------

    def tell(self, ended: Ended) -> None:
        """An end that somebody else wrote on the tape."""
        self._agenda.tell(ended)

    def give_up(self, why: EverforgeError) -> None:
        """Whoever still waits hears that nobody will answer here."""
        self._agenda.give_up(why)

    async def stop(self) -> None:
        """Let go of everything, at once; `give_up` comes after. The machine stays as it is, with its sandbox, for the next server or for `delete`."""
        self._agenda.closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self.residency.housing.incarnation is not None:
            await self.residency.housing.incarnation.close()

    async def settle(self, *, at_any_price: bool = False) -> None:
        """For an orderly stop: give what runs a little time, then hibernate. What waits is on the tape and runs after the next start.

        A machine whose instruction still runs then, or that cannot be saved, stays awake; at any price, such as when its host goes down, the
        instruction is ended.
        """
        with self.pinned():
            await self._settle(at_any_price=at_any_price)

    async def _settle(self, *, at_any_price: bool) -> None:
        self._settling = True
        self.dossier.stir()
        self._agenda.clear(Refused("the server is stopping; nothing was done"))
        running = self._floor.current or self._inherited
        if running is not None and not self.waits and (end := self._agenda.end(running.instruction.number)):
            await asyncio.wait([end], timeout=self._settings.stop_grace_seconds)
            if (current := self._floor.current) is not None and not self.waits:  # one that waits sleeps with its machine
                if not at_any_price:
                    log.warning("machine %s stays awake: its instruction %d runs on", self.dossier.record.name, current.instruction.number)
                    return
                current.insist("interrupted")
                await asyncio.wait([end], timeout=self._settings.interrupt_grace_seconds + self._settings.kill_grace_seconds)
        sleep = asyncio.ensure_future(self.operate("stop", self.hibernate))
        full = asyncio.ensure_future(self.dossier.waits_for_room.wait())  # for who knows how long
        try:
            await asyncio.wait([sleep, full], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            full.cancel()
            ended, _ = await asyncio.gather(sleep, full, return_exceptions=True)
        if self.residency.housing.incarnation is not None:
            why = str(ended) if isinstance(ended, Exception) else "the disk is full"
            log.error("machine %s could not be hibernated, and is left awake for the next server: %s", self.dossier.record.name, why)

    # --- the loop ------------------------------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        try:
            if self.residency.now is Residence.CREATING:
                await self.residency.create()
            while not self._may_retire():
                await self._step()
                incarnation = self.residency.housing.incarnation
                if incarnation is not None and incarnation.lost.done():
                    await self._lose(incarnation.lost.result())  # also in the middle of a save
                if self.residency.now not in BETWEEN_STEPS:
                    # Something went wrong half way. Recovery knows every half way, and puts it right.
                    raise RuntimeError(f"machine {self.dossier.record.name} was left {self.residency.now}")
        except Exception:
            # A mistake of ours. The machine itself is unharmed: the next keeper takes its sandbox over as after a crash of the server.
            log.exception("the keeper of %s failed", self.dossier.record.name)
            self.failed = self._agenda.closed = True
            if self.residency.housing.incarnation is not None:
                await self.residency.housing.incarnation.close()
            self._agenda.give_up(Uncertain(f"the keeper of machine {self.dossier.record.name} failed; its tape says what happened", position=None))
        finally:
            self._agenda.closed = True
            self.dossier.stir()
            self.retired()

    async def _step(self) -> None:
        incarnation = self.residency.housing.incarnation
        if incarnation is not None and incarnation.failure is not None:
            raise incarnation.failure
        if self._inherited is not None:
            inherited, self._inherited = self._inherited, None
            await self._floor.begin(inherited.instruction, lambda run: run.resume(inherited.end, inherited.ran_seconds), inherited.calls)
        elif self.waits:
            if not await self._waiting.step(stopping=self._settling):
                await self._do_meanwhile()
        elif (item := self._agenda.first) is None:
            await self._idle()
        elif isinstance(item, Operation):
            self._agenda.take()
            await self._operate(item)
        elif item.recorded is not None:
            await item.recorded  # it keeps its place, or is withdrawn
        else:
            self._agenda.take()
            if not self._settling:
                await self._take_turn(item)

    async def _lose(self, ending: Any) -> None:
        await self.residency.lose(ending, self.residency.housing.effects if self.running is None else self.running)
        self._floor.let_go()

    def _may_retire(self) -> bool:
        settled = self.residency.now in (Residence.ASLEEP, Residence.BROKEN, Residence.DELETED)
        return settled and self._agenda.empty and not self._pins and self._floor.current is None

    async def _idle(self) -> None:
        changed = self._agenda.changed
        changed.clear()
        if self.residency.now is not Residence.AWAKE:
            await changed.wait()
            return
        if self._visitors:
            await changed.wait()  # the last of them says so when it goes
            return
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(self._due_at - time.monotonic(), changed.set)  # asyncio.timeout does the same in many times the time
        try:
            await changed.wait()
        finally:
            alarm.cancel()
        if time.monotonic() >= self._due_at and not self._wanted and self.residency.now is Residence.AWAKE:
            with contextlib.suppress(SaveFailed, SandboxLost):
                await self.residency.hibernate(lambda: self._wanted)

    @property
    def _active_at(self) -> float:
        return max(self._seen_at, self._floor.used_at)

    @property
    def _due_at(self) -> float:
        """When it has been idle for long enough."""
        return max(self._active_at + self.dossier.record.idle_seconds, self.residency.save_retry_at)

    async def _operate(self, operation: Operation) -> None:
        try:
            result: Any = await operation.act()
        except EverforgeError as e:
            operation.fail(e)
        except BaseException:
            operation.fail(Uncertain(f"{operation.name} was cut short", position=None))
            raise
        else:
            if not operation.done.done():
                operation.done.set_result(result)
        self._seen_at = time.monotonic()

    # --- instructions --------------------------------------------------------------------------------------------------------------------

    async def _take_turn(self, instruction: Instruction) -> None:
        number = instruction.number
        if not await self._agenda.is_wanted(number):
            return
        try:
            await self.residency.ensure_awake()
        except (NoCapacity, WakeFailed, DiskFull) as e:
            if isinstance(e, QuotaExceeded):  # nobody is answered with it, which would tell of it elsewhere
                record = self.dossier.record
                self.dossier.signals.tell("limit.hit", account=record.account, machine=record.name, limit=e.details.get("limit"))
            await self._floor.end_without_run(number, "error", f"{e.code}: {e.message}", retry="later")
        except EverforgeError as e:
            await self._floor.end_without_run(number, "lost", f"{e.code}: {e.message}")
        else:
            if not await self._agenda.is_wanted(number):  # it was interrupted while it was being woken
                return
            if not (instruction.work.is_plain or self.residency.housing.guest_protocol >= 2):
                await self._floor.end_without_run(number, "error", f"GuestTooOld: {GUEST_TOO_OLD}")
            elif not self._settling:
                await self._floor.begin(instruction, lambda run: run.run())

    async def _do_meanwhile(self) -> None:
        """While an instruction waits for its client's program."""
        item = self._agenda.first
        if isinstance(item, Operation):
            self._agenda.take()
            await self._operate(item)
        elif item is not None and self._settling:
            await self._pass_over(item)
        else:
            await self._idle()

    async def _pass_over(self, item: Instruction) -> None:
        """The server is stopping: it is on the tape, and the next one runs it."""
        if item.recorded is not None:
            await item.recorded
        else:
            self._agenda.take()

    async def hibernate(self) -> bool:
        """True when it sleeps afterwards. An instruction that waited and has just ended gets its end first; one that was just answered goes on."""
        return await self._waiting.hibernate()


async def _first(futures: Sequence[asyncio.Future[Any]]) -> None:
    """Until one of them is done; those that were made for this alone are cancelled."""
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        futures[-1].cancel()
