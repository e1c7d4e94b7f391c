"""One sandbox being one machine, from hello to its end.

The pump reads what the guest says and puts it on the tape, in the guest's order. An `end` is held until the keeper says what becomes of it (a
snapshot may have to come first); whatever the guest says after it waits behind it, since the tape's last frame number is what a new server asks
the guest to go on from.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from everforge.engine.base import Ending, How, Sandbox
from everforge.wire.errors import EverforgeError, ProtocolError, SandboxLost, SaveFailed, Uncertain
from everforge.wire.events import START, Answered, Called, Displayed, Ended, Event, Moved, Output
from everforge.wire.frames import NONCE_BYTES
from everforge.wire.messages import (
    Answer,
    Call,
    CallDropped,
    CannotFreeze,
    Complete,
    Completed,
    Display,
    End,
    FileTold,
    Freeze,
    Frozen,
    Go,
    GuestMessage,
    Interrupt,
    Kill,
    Knock,
    OpenDoor,
    Outputs,
    Run,
    Setup,
    Thawed,
)

from .agenda import Work
from .calls import Calls
from .doors import Door, Doors
from .dossier import Dossier
from .errands import Errands
from .gate import Gate
from .guestline import GuestLine, Heard
from .settings import MachineSettings

log = logging.getLogger(__name__)
Told = TypeVar("Told", Frozen, Thawed, Completed)
OUTPUT_SLACK = 1.5  # the guest keeps the limit itself; one that goes this far over it is not our guest any more
UNDER_WAY_BYTES = 8 * 1024 * 1024  # and what was said before it heard of a limit: a pipe full, and all that it keeps for a resend
COMPLETE_SECONDS = 5.0  # the guest itself gives up after two
ENDED_SECONDS = 5.0  # for the engine to say how a sandbox ended
# What waits in memory behind a held end, as it came over the link; as objects it can be thirty times as much, but no message becomes more than 64 MB
# (wire.bodies), so a large one counts as LARGE_BYTES. An honest guest stops by itself at 4 MiB and one large message.
BEHIND_END_BYTES_MAX = 8 * 1024 * 1024
LARGE_BYTES = 2 * 1024 * 1024
ENTRY_LINES_MAX = 4096  # of output: a million empty lines are small on their way, and large in memory
NOBODY_WAITS = "whoever called was interrupted, and waits no longer"
WHY_CHARACTERS_MAX = 500  # of a guest's sentence that goes into a machine's record


class Incarnation:
    def __init__(
        self,
        sandbox: Sandbox,
        line: GuestLine,
        dossier: Dossier,
        settings: MachineSettings,
        errands: Errands | None = None,
        doors: Doors | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.line = line
        self._dossier = dossier
        self._settings = settings
        self._errands = errands or Errands()
        self.gate = Gate()
        self._epoch = dossier.record.epoch
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[Ending] = self._loop.create_future()
        self.failure: Exception | None = None  # ours, not the guest's
        self.troubled: asyncio.Future[None] = self._loop.create_future()  # lost or failed
        self._answers: dict[type[GuestMessage], asyncio.Future[Any]] = {}
        self._instruction: int | None = None
        self._calls: Calls | None = None  # of functions of the client's program, by the running instruction
        self._stray: int | None = None  # an instruction that the guest is at, or was, and nobody waits for
        self._let_go = asyncio.Event()
        self._end: asyncio.Future[End] | None = None
        self._end_frame: int | None = None  # of the end that is held
        self._events: list[Event] = []  # said by the guest, not yet on the tape
        self._behind_end: list[Event] = []
        self._behind_end_bytes = 0
        self._end_committed = asyncio.Event()
        self._next_seq: dict[int | None, int] = {}
        self._output_bytes = 0
        self.displays: int | None = None  # of the running instruction; None where an earlier server may have seen some
        self._freeze_token = 0
        self._complete_token = 0
        self._completing = asyncio.Lock()
        self._flushing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._door = self._open_door(doors) if doors is not None else None
        self._answering: asyncio.Task[None] | None = None  # a knock

    # --- life ------------------------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """After hello: read the guest and watch the sandbox, until `close`."""
        self._tasks = [self._loop.create_task(self._pump()), self._loop.create_task(self._watch())]

    async def close(self) -> None:
        """Stop reading; the sandbox is left as it is."""
        self._part("the machine's sandbox was let go of in the middle of it")
        if self._answering is not None:
            self._tasks.append(self._answering)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)  # not awaited one by one: our own cancellation must not be taken for theirs
        if self._door is not None:
            await self._door.close()
        self.line.close()

    async def _watch(self) -> None:
        self.lose(await self.sandbox.ended())

    def lose(self, ending: Ending) -> None:
        """Whoever waits for this sandbox hears that it is gone, or given up."""
        if not self.lost.done():
            self.lost.set_result(ending)
        self._dismiss(SandboxLost(f"the sandbox is gone: {ending.detail or ending.how}"))
        self._part(f"the machine's sandbox is gone: {ending.detail or ending.how}")
        if not self.troubled.done():
            self.troubled.set_result(None)

    def _part(self, why: str) -> None:
        """From those who talk with the guest beside its instructions."""
        self.gate.remove()
        self._errands.cut(why)

    def _dismiss(self, error: EverforgeError) -> None:
        for future in (self._end, *self._answers.values()):
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # nobody may be waiting

    # --- what the guest says -----------------------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        try:
            while True:
                self._take_all(await self.line.receive())
                if self._end_frame is None:
                    await self.flush()
                elif self._behind_end_bytes > BEHIND_END_BYTES_MAX:
                    await self._end_committed.wait()  # nothing more is read meanwhile, so whoever writes must wait too
        except SandboxLost:
            await self._lost_link()
        except ProtocolError as e:
            self.lose(Ending(How.EXITED, f"the guest broke the protocol: {e.message}"))
        except Exception as e:
            # The tape cannot be written. The sandbox is sound: the keeper fails, and the next one goes on from what is on the tape.
            log.exception("what the guest of %s said could not be recorded", self._dossier.record.name)
            self._fail(e)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._part(f"what the machine said could not be recorded: {error}")
        self._dismiss(Uncertain(f"what the machine said could not be recorded: {error}", position=None))
        if not self.troubled.done():
            self.troubled.set_result(None)

    async def _lost_link(self) -> None:
        try:
            async with asyncio.timeout(ENDED_SECONDS):
                self.lose(await self.sandbox.ended())
        except TimeoutError:
            self.lose(Ending(How.KILLED, "the guest closed its link"))

    def _take_all(self, batch: Sequence[Heard]) -> None:
        """Here, so that nothing holds on to the last of them while the next is waited for: it may be large."""
        for heard in batch:
            self._take(heard)

    def _take(self, heard: Heard) -> None:
        match heard.message:
            case Outputs() as message:
                for output in self._outputs(heard.number, message):
                    self._add(output, heard.size_bytes)
            case Display() as message:
                self._add(self._displayed(heard, message), heard.size_bytes)
            case End() as message:
                self._take_end(heard.number, message)
            case Call() as message:
                self._take_call(heard, message)
            case CallDropped() as message:
                self._take_dropped(heard, message)
            case Frozen() as message:
                if message.token == self._freeze_token:  # an old one comes again after a change of servers
                    self._answer(message)
            case CannotFreeze() as message:
                self._refuse_freeze(message)
            case Thawed() as message:
                self._answer(message)
            case Completed() as message:
                if message.token == self._complete_token:
                    self._answer(message)
            case FileTold() as message:
                self._errands.hear(message)
            case Knock():
                self._answer_knock()
            case message:
                raise ProtocolError(f"the guest said {type(message).__name__}, which only comes first")

    def _answer(self, message: GuestMessage) -> None:
        if (future := self._answers.get(type(message))) and not future.done():
            future.set_result(message)

    # --- the way out -------------------------------------------------------------------------------------------------------------------

    def _open_door(self, doors: Doors) -> Door | None:
        """Before the guest's first `go`: the policy holds before anything of the user's runs."""
        sock = self.sandbox.egress()
        return None if sock is None else doors.open(sock, lambda: self._dossier.record)

    def reconsider_egress(self) -> None:
        if self._door is not None:
            self._door.reconsider()

    def _answer_knock(self) -> None:
        """One at a time; a guest that knocks while it is answered has been heard."""
        if self._door is not None and (self._answering is None or self._answering.done()):
            nonce = secrets.token_bytes(NONCE_BYTES)
            self._door.begin(nonce)
            self._answering = self._loop.create_task(self._open_to(nonce))

    async def _open_to(self, nonce: bytes) -> None:
        with contextlib.suppress(SandboxLost):  # then there is nobody to open to
            await self.line.send_control(OpenDoor(nonce=nonce.hex()))

    def _refuse_freeze(self, message: CannotFreeze) -> None:
        future = self._answers.get(Frozen)
        if message.token == self._freeze_token and future is not None and not future.done():
            future.set_exception(SaveFailed(f"the machine was not saved: {message.why[:WHY_CHARACTERS_MAX]}"))

    def _add(self, event: Event, size_bytes: int) -> None:
        if self._end_frame is None:
            self._events.append(event)
        else:
            self._behind_end.append(event)
            self._behind_end_bytes += min(size_bytes, LARGE_BYTES)

    def _outputs(self, number: int, message: Outputs) -> Iterator[Output]:
        """One entry or more, none of them too large for who reads it."""
        instruction = self._known_instruction(message.instruction)
        if not message.lines:
            raise ProtocolError("the guest sent an output without lines")
        self._count_output(sum(map(len, message.lines)) + len(message.lines))
        seq = self._next_seq.get(instruction, 0)
        self._next_seq[instruction] = seq + len(message.lines)
        for first in range(0, len(message.lines), ENTRY_LINES_MAX):
            yield Output(
                instruction=instruction,
                stream=message.stream,
                first_seq=seq + first,
                lines=message.lines if len(message.lines) <= ENTRY_LINES_MAX else message.lines[first : first + ENTRY_LINES_MAX],
                partial=message.partial and first + ENTRY_LINES_MAX >= len(message.lines),
                origin=message.origin,
                epoch=self._epoch,
                frame=number,
            )

    def _displayed(self, heard: Heard, message: Display) -> Displayed:
        instruction = self._known_instruction(message.instruction)
        self._count_output(heard.size_bytes)
        if self.displays is not None and instruction is not None:
            self.displays += 1
        return Displayed(instruction=instruction, data=message.data, metadata=message.metadata, epoch=self._epoch, frame=heard.number)

    def _count_output(self, size_bytes: int) -> None:
        self._output_bytes += size_bytes
        if self._output_bytes > self._settings.output_bytes_max * OUTPUT_SLACK + UNDER_WAY_BYTES:
            raise ProtocolError(f"the guest sent more than the {self._settings.output_bytes_max} bytes of output that it may")

    def _known_instruction(self, instruction: int | None) -> int | None:
        """What a stray one says is told as what comes between instructions."""
        if instruction is not None and instruction != self._instruction:
            if instruction != self._stray:
                raise ProtocolError(f"the guest spoke of instruction {instruction}, but {self._instruction} is running")
            return None
        return instruction

    def _take_call(self, heard: Heard, message: Call) -> None:
        if self._known_instruction(message.instruction) is None:
            return  # nobody will answer a stray one: it is being ended
        if self._calls is None or self._end_frame is not None:
            raise ProtocolError(f"instruction {message.instruction} has called a function that it was not given, or after its end")
        self._calls.take(message, heard.size_bytes)
        called = Called(
            instruction=message.instruction,
            call=message.call,
            function=message.function,
            args=message.args,
            kwargs=message.kwargs,
            epoch=self._epoch,
            frame=heard.number,
        )
        self._add(called, heard.size_bytes)

    def _take_dropped(self, heard: Heard, message: CallDropped) -> None:
        if self._known_instruction(message.instruction) is not None and self._calls is not None and self._calls.drop(message.call, START):
            told = Answered(instruction=message.instruction, call=message.call, error=NOBODY_WAITS, epoch=self._epoch, frame=heard.number)
            self._add(told, heard.size_bytes)

    def _take_end(self, number: int, message: End) -> None:
        if message.instruction == self._stray:
            self._stray = None
            detail = {"instruction": message.instruction}
            told = Moved(event="let_go", residence=self._dossier.record.residence, detail=detail, epoch=self._epoch, frame=number)
            self._add(told, 0)
            self._let_go.set()
            return
        if self._end is None or message.instruction != self._instruction or self._end_frame is not None:
            raise ProtocolError(f"the guest ended instruction {message.instruction}, which is not running")
        self._end_frame = number
        self._end_committed.clear()
        self._output_bytes = 0  # what comes between instructions has an allowance of its own
        if not self._end.done():
            self._end.set_result(message)

    # --- onto the tape -----------------------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Everything said up to now is on the tape when it returns (but a held end, and what came behind it)."""
        async with self._flushing:
            if events := self._events:
                self._events = []
                await self._dossier.write(events=events, step="output")
                await self.line.acknowledge(events[-1].frame)

    async def commit_end(self, ended: Ended, **write: Any) -> Ended:
        """The held end, with all that came before it, in one transaction; then the rest may follow. Returns it as it stands on the tape."""
        async with self._flushing:
            frame = self._end_frame or 0
            events, self._events = [*self._events, replace(ended, epoch=self._epoch, frame=frame)], self._behind_end
            self._behind_end, self._end_frame, self._end, self._instruction, self._calls = [], None, None, None, None
            self._behind_end_bytes = 0
            self._next_seq.pop(ended.instruction, None)
            self.line.ask()
            written = await self._dossier.write(events=events, step="end", **write)
            if frame:
                await self.line.acknowledge(frame)
        if self._events:
            await self.flush()
        self._end_committed.set()
        return next(e for e in written if isinstance(e, Ended))

    # --- what we tell the guest --------------------------------------------------------------------------------------------------------

    async def start_turn(self, instruction: int, work: Work, calls: Calls | None = None) -> asyncio.Future[End]:
        end = self.expect_end(instruction, 0, calls)
        self.displays = 0
        self.line.ask()
        with self._dossier.steps.step("run"):
            await self.line.send(Run(instruction, work.code, dict(work.env), list(work.functions)))
        return end

    def expect_end(self, instruction: int, next_seq: int = 0, calls: Calls | None = None) -> asyncio.Future[End]:
        """Of a turn that starts now; of one that an earlier server started; or of one that slept with its machine."""
        self._calls = calls
        self._instruction, self._output_bytes, self.displays = instruction, 0, None
        self._next_seq[instruction] = next_seq
        self._end = self._loop.create_future()
        self._check_alive()
        return self._end

    def continue_background(self, next_seq: int) -> None:
        """For a new server: where the numbers of output between instructions go on."""
        self._next_seq[None] = next_seq

    async def answer(self, answered: Answered) -> None:
        """From the tape to the code that waits for it."""
        with self._dossier.steps.step("answer"):
            await self.line.send(Answer(answered.instruction, answered.call, answered.value, answered.error))

    def expect_stray(self, instruction: int) -> None:
        """The guest may be at this one, or just have ended it, and nobody waits for its end: it was taken from a copy, or has an end already."""
        self._stray = instruction

    async def let_go(self, instruction: int) -> None:
        """End a stray instruction, so that the interpreter is free for others. Raises SandboxLost."""
        for stop, seconds in ((self.interrupt, self._settings.interrupt_grace_seconds), (self.kill, self._settings.kill_grace_seconds)):
            await stop(instruction)
            gone = asyncio.ensure_future(self._let_go.wait())
            try:
                await asyncio.wait([gone, self.lost], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
            if self._let_go.is_set():
                return await self.flush()
        error = SandboxLost("the guest would not let go of an instruction of another time")
        self.lose(Ending(How.EXITED, error.message))
        raise error

    async def interrupt(self, instruction: int) -> None:
        await self.line.send(Interrupt(instruction=instruction))

    async def kill(self, instruction: int) -> None:
        await self.line.send(Kill(instruction=instruction))

    async def set_up(self, env: dict[str, str], limits: dict[str, int], files: Mapping[str, str]) -> None:
        await self.line.send(Setup(env=env, limits=limits, files=dict(files)))

    async def freeze(self) -> None:
        """The user's processes stand still and everything they said is on the tape (but behind a held end). Raises SaveFailed, and they go on."""
        await self.gate.close()
        self._freeze_token = secrets.randbits(31)
        with self._dossier.steps.step("freeze"):
            try:
                await self._order(Freeze(token=self._freeze_token), Frozen)
            except TimeoutError:
                raise SaveFailed(f"the machine's processes could not be stopped within {self._settings.guest_answer_seconds:g} s") from None
        if self._end_frame is None:
            await self.flush()

    async def go(self, entropy: str | None = None) -> None:
        with self._dossier.steps.step("go"):
            try:
                thawed = await self._order(Go(time_ns=time.time_ns(), entropy=entropy), Thawed)
            except TimeoutError:
                error = SandboxLost(f"the guest did not go on within {self._settings.guest_answer_seconds:g} s")
                self.lose(Ending(How.EXITED, error.message))
                raise error from None
        self.gate.open()
        if not thawed.reseeded:
            log.info("machine %s is busy; it gets its fresh random numbers before the next instruction", self._dossier.record.name)

    async def complete(self, code: str, cursor: int) -> Completed:
        """Soon, whatever its interpreter does meanwhile. Raises SandboxLost."""
        async with self._completing:
            token = self._complete_token = secrets.randbits(31)
            try:
                with self.line.awaited(COMPLETE_SECONDS):
                    return await self._order(Complete(token, code, cursor), Completed, COMPLETE_SECONDS)
            except TimeoutError:
                return Completed(token, busy=True)

    def _check_alive(self) -> None:
        """Whoever begins to wait now is told at once."""
        if self.lost.done():
            self.lose(self.lost.result())
        elif self.failure is not None:
            self._fail(self.failure)

    async def _order(self, message: GuestMessage, answer: type[Told], seconds: float | None = None) -> Told:
        """Raises TimeoutError after so many seconds; where none are given, after those in which a guest must answer, if it was listened to."""
        future: asyncio.Future[Told] = self._loop.create_future()
        self._answers[answer] = future
        self._check_alive()
        try:
            async with asyncio.timeout(seconds):
                await self.line.send(message)
                if seconds is None and not await self.line.settled(future, self._settings.guest_answer_seconds):
                    raise TimeoutError
                return await future
        finally:
            del self._answers[answer]
            if future.done() and not future.cancelled():
                future.exception()  # seen
