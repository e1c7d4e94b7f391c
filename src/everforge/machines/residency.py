"""When a machine comes and goes: creation, wake, sleep, going back, loss. How it does so is housing.py's business."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

from everforge.engine.base import Ending, How
from everforge.store.base import PointRecord
from everforge.store.quotas import NoQuotas, Quota
from everforge.wire.errors import (
    DiskFull,
    EverforgeError,
    MachineBroken,
    MachineNotFound,
    NoCapacity,
    QuotaExceeded,
    Refused,
    SandboxLost,
    SaveFailed,
    SnapshotDamaged,
    SnapshotForeign,
    SnapshotNotFound,
    StartFailed,
    WakeFailed,
)
from everforge.wire.events import START, Ended, Event, Lost
from everforge.wire.ids import AccountId, SnapshotId

from . import dossier as dossiers
from .admission import Admission
from .agenda import Agenda
from .creation import check_disk_room
from .dossier import Dossier
from .housing import Housing
from .lifecycle import ACCEPTING, Arrow, Residence
from .points import Target, find, offer
from .settings import MachineSettings

T = TypeVar("T")
log = logging.getLogger(__name__)
HOST_LOST_IT = frozenset({How.LOST, How.KILLED})  # the guest did nothing wrong: back at the last snapshot, with a word about it
QuotaOf = Callable[[AccountId], Awaitable[Quota]]
UNSOUND = (SnapshotDamaged, SnapshotForeign, SnapshotNotFound)  # trying again would not help


class Residency:
    def __init__(
        self, dossier: Dossier, housing: Housing, agenda: Agenda, admission: Admission, settings: MachineSettings, quota_of: QuotaOf | None = None
    ) -> None:
        self.dossier = dossier
        self.housing = housing
        self._agenda = agenda
        self._admission = admission
        self._settings = settings
        self._quota_of = quota_of or NoQuotas().of
        self.save_retry_at = 0.0  # monotonic seconds

    @property
    def now(self) -> Residence:
        return self.dossier.residence

    async def check_accepting(self) -> None:
        record = self.dossier.record
        if self.now is Residence.BROKEN:
            points = [p.snapshot for p in await self.housing.points_there()]
            raise MachineBroken(f"machine {record.name} is broken: {record.error}. Roll it back to a point, or reset it", points=points)
        if self.now not in ACCEPTING:
            raise MachineNotFound(f"machine {record.name} is deleted")

    # --- up ------------------------------------------------------------------------------------------------------------------------------

    async def create(self) -> None:
        """From `creating` to `awake`, or to `broken` when it cannot be done."""
        try:
            await self._persist(self._start_up)
        except NoCapacity:
            log.warning("no room yet for the new machine %s", self.dossier.record.name)  # tried again when it is wanted
        except EverforgeError as e:
            await self.break_down(Arrow.START_FAILED, StartFailed(f"it could not be started: {e.message}"))

    async def _start_up(self) -> None:
        try:
            await self._admit()
            await self.housing.bring_up(Arrow.STARTED)
        except EverforgeError as e:
            self._admission.release(self.dossier.record.id)
            if isinstance(e, (*UNSOUND, NoCapacity)):
                raise
            raise WakeFailed(e.message) from e
        self.notice_loss()

    async def ensure_awake(self) -> None:
        """Wake it if it sleeps. Raises NoCapacity, WakeFailed, MachineBroken, SnapshotDamaged."""
        if self.now is Residence.CREATING:
            await self._persist(self._start_up)
        elif self.now is not Residence.AWAKE:
            await self._persist(self._wake)

    async def _wake(self) -> None:
        await self.check_accepting()
        await self._admit()
        async with self._admitted():
            await self.dossier.write(Arrow.WAKE_STARTED, patient=False)
        await self._raise_up()

    @asynccontextmanager
    async def _admitted(self) -> AsyncGenerator[None]:
        """The place is given back when what it was taken for does not begin."""
        try:
            yield
        except BaseException:
            if self.now is not Residence.AWAKE:
                self._admission.release(self.dossier.record.id)
            raise

    async def _persist(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Try a bounded number of times, with growing pauses: a restore can fail for want of something that comes back."""
        pause = self._settings.wake_pause_seconds
        for tries_left in reversed(range(self._settings.wake_tries)):
            try:
                return await attempt()
            except WakeFailed:
                if not tries_left:
                    raise
                await asyncio.sleep(pause)
                pause *= 2
        return None

    async def _raise_up(self) -> None:
        """From `waking` to `awake`. A snapshot that is not sound breaks the machine; anything else leaves it asleep, to be tried again."""
        record = self.dossier.record
        try:
            await self.housing.bring_up(Arrow.WOKEN)
        except UNSOUND as e:
            self._admission.release(record.id)
            await self.break_down(Arrow.SNAPSHOT_BAD, e)
            raise
        except EverforgeError as e:
            self._admission.release(record.id)
            fields = {"failed_wakes": record.failed_wakes + 1, "error": e.message, "sandbox": None}
            await self.dossier.write(Arrow.WAKE_FAILED, set=fields, detail={"error": e.message})
            raise WakeFailed(f"machine {record.name} could not be woken and is still asleep: {e.message}") from e
        self.notice_loss()

    async def _admit(self) -> None:
        record = self.dossier.record
        await self._admission.admit(
            record.id, record.memory_mb, self._settings.admission_seconds, record.account, await self._quota_of(record.account)
        )

    def notice_loss(self) -> None:
        """The keeper's loop must hear of the end of a sandbox while it waits for something to do."""
        assert self.housing.incarnation is not None
        self.housing.incarnation.troubled.add_done_callback(lambda _: self._agenda.changed.set())

    # --- down ----------------------------------------------------------------------------------------------------------------------------

    async def hibernate(self, wanted: Callable[[], bool] = lambda: False) -> bool:
        """True when it sleeps afterwards."""
        if self.now is not Residence.AWAKE:
            await self.check_accepting()
            return self.now is Residence.ASLEEP
        try:
            return await self.housing.hibernate(wanted)
        except SaveFailed:
            self.save_retry_at = time.monotonic() + self._settings.save_retry_seconds
            raise
        finally:
            if self.dossier.residence is Residence.ASLEEP:
                self._admission.release(self.dossier.record.id)

    # --- back ----------------------------------------------------------------------------------------------------------------------------

    async def roll_back(self, target: Target, *, discard: bool = False) -> tuple[PointRecord, SnapshotId | None]:
        """To a kept point; the state before is itself kept as one, where there was any and unless it is to be discarded. Refused with nothing
        changed when either is not sound."""
        point = find(await self.dossier.store.points(self.dossier.record.id), target)
        with self.housing.hold(point.snapshot):  # between the check and the restore, too
            return point, await self.with_room(lambda: self._go_back(point, discard=discard), discard=discard)

    async def _go_back(self, point: PointRecord, *, discard: bool) -> SnapshotId | None:
        await self.housing.check(point.snapshot)
        undo = await self._keep_state("before_rollback", point.snapshot, discard=discard)
        if self.now is not Residence.AWAKE:
            await self._admit()
        async with self._admitted():
            await self._leave_for(Arrow.ROLLBACK_STARTED, point, {"undo": undo})
        await self._cancel_waiting("the machine was rolled back")
        await self._raise_up()
        return undo

    async def reset(self, template: PointRecord, *, discard: bool = False) -> SnapshotId | None:
        """To a fresh start from the template; what was before is kept as a point, unless it is to be discarded."""
        await self.housing.check(template.snapshot)
        undo = await self._keep_state("before_reset", template.snapshot, discard=discard)
        await self._leave_for(Arrow.RESET_STARTED, template, {"undo": undo})
        await self._cancel_waiting("the machine was reset")
        await self.create()
        return undo

    async def with_room(self, attempt: Callable[[], Awaitable[T]], *, discard: bool) -> T:
        """`attempt`; and on a full disk again without the sandbox, where what is in it is to be discarded anyway."""
        try:
            return await attempt()
        except DiskFull:
            if not discard or self.now is not Residence.AWAKE:
                raise
        await self.housing.give_up()
        until = time.monotonic() + dossiers.ROOM_SECONDS
        while True:
            try:
                return await attempt()
            except DiskFull:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(dossiers.FULL_DISK_PAUSE_SECONDS)

    async def _keep_state(self, reason: Literal["before_rollback", "before_reset"], spare: SnapshotId, *, discard: bool) -> SnapshotId | None:
        """What makes going back undoable. An awake machine is saved now, unless it is to be discarded; a sleeping one is a point already; a broken
        one has nothing to keep."""
        if self.now is not Residence.AWAKE:
            return self.dossier.record.head if self.now is Residence.ASLEEP else None
        if discard:
            return None
        await self._check_disk()
        try:
            return (await self.housing.save_point(reason, spare=spare)).snapshot
        except DiskFull:
            raise
        except SaveFailed as e:  # what runs in it may keep it from ever being saved, and must not keep it from going back
            name = self.dossier.record.name
            words = f"rollback {name} SNAPSHOT" if reason == "before_rollback" else f"reset {name}"
            how = f"`everforge machine {words} --discard`, or `discard` in the API"
            raise SaveFailed(f"{e.message}. To go back without keeping what is there now: {how}", **e.details) from e

    async def _check_disk(self) -> None:
        """Before a snapshot that the machine could do without. Raises QuotaExceeded."""
        account = self.dossier.record.account
        await check_disk_room(self.dossier.store, await self._quota_of(account), account)

    async def _leave_for(self, arrow: Arrow, point: PointRecord, detail: dict[str, object]) -> None:
        record = self.dossier.record
        fields = {"head": point.snapshot, "sandbox": None, "notice": None, "error": None, "unsaved_from": record.next_instruction}
        detail = {"to": point.snapshot, "instruction": point.instruction, **detail}
        # What was accepted before ends in the same transaction: after a server that dies behind it the next one would run it, under numbers that
        # count as saved. And what the machine goes back to may be in the middle of the instruction that waits for an answer.
        waits = self.housing.waiting.instruction.number if self.housing.waiting else None
        what = f"cancelled: the machine was {'reset' if arrow is Arrow.RESET_STARTED else 'rolled back'}"
        ends = [
            Ended(instruction=n, end="cancelled", error=f"{what} while it waited for an answer" if n == waits else what) for n in self._agenda.unended
        ]
        self._tell(await self.dossier.write(arrow, set=fields, events=ends, detail=detail, durable=True, patient=False))
        self.housing.waiting = None
        self.housing.life += 1
        await self.housing.leave()  # after the record: a crash in between finds a sandbox that nobody claims, and destroys it

    async def _cancel_waiting(self, why: str) -> None:
        await self.end_waiting("cancelled", f"cancelled: {why}", Refused(f"cancelled: {why}"))

    async def end_waiting(self, end: str, error: str, refusal: EverforgeError) -> None:
        """Everything in the queue gets its end, also what a server that is stopping would have left to the next one. Nothing is running."""
        self._agenda.clear(refusal)
        ends = [Ended(instruction=n, end=end, error=error) for n in self._agenda.unended]  # pyright: ignore[reportArgumentType]
        if ends:
            self._tell(await self.dossier.write(events=ends, step="end"))

    def _tell(self, written: Sequence[Event]) -> None:
        for event in written:
            if isinstance(event, Ended):
                self._agenda.tell(event)

    # --- history -------------------------------------------------------------------------------------------------------------------------

    async def keep_history(self) -> None:
        """A point after an instruction. Beyond the account's disk none is taken, and the machine says so until one is again."""
        try:
            await self._check_disk()
        except QuotaExceeded as e:
            await self._say_no_point(f"no snapshot was taken after the last instruction: {e.message}")
        else:
            await self.housing.save_point("each")

    async def save_with_end(self, ended: Ended) -> Ended:
        """The end of an instruction and a point that holds its effects; where there may be no point, the end says so."""
        try:
            await self._check_disk()
        except QuotaExceeded as e:
            return await self.housing.end_unsaved(ended, e)
        return await self.housing.save_with_end(ended)

    async def _say_no_point(self, message: str) -> None:
        record = self.dossier.record
        if record.error != message:
            await self.dossier.write(set={"error": message}, step="update")
            self.dossier.signals.tell("limit.hit", account=record.account, machine=record.name, limit="disk_mb")

    # --- gone ----------------------------------------------------------------------------------------------------------------------------

    async def lose(self, ending: Ending, last_executed: int | None, *, patient: bool = True) -> None:
        """The sandbox is no more. One entry says what is gone; everything under way ends as lost; nothing falls back silently."""
        self.housing.waiting = None
        await self.housing.leave()
        self.housing.life += 1
        record = self.dossier.record
        self._admission.release(record.id)
        if ending.how is How.OUT_OF_MEMORY:
            self.dossier.signals.tell("limit.hit", account=record.account, machine=record.name, limit="memory_mb")
        executed = range(record.unsaved_from, record.unsaved_from if last_executed is None else last_executed + 1)
        points = await self.dossier.store.points(record.id)
        since = next((p.position for p in reversed(points) if p.snapshot == record.head), START)
        reason = ending.detail or str(ending.how)
        first, last = (executed[0], executed[-1]) if executed else (None, None)
        lost = Lost(since_position=since, first_instruction=first, last_instruction=last, snapshot=record.head, reason=reason)
        error = SandboxLost(f"its sandbox was lost ({reason})")
        resumed = self._resumed(reason, executed) if ending.how in HOST_LOST_IT else None
        await self.break_down(Arrow.SANDBOX_LOST, error, [lost], resumed, patient=patient)

    def _resumed(self, reason: str, executed: Sequence[int]) -> dict[str, object]:
        """What its record says when it is back at its last snapshot."""
        record = self.dossier.record
        notice = f"the memory of this machine was lost ({reason}) and it is back at snapshot {record.head}"
        if executed:
            notice += f", without the effects of instructions {executed[0]} to {executed[-1]}"
        return {"notice": notice, "error": None, "unsaved_from": record.next_instruction}

    async def break_down(
        self,
        arrow: Arrow,
        error: EverforgeError,
        events: Sequence[Event] = (),
        resumed: Mapping[str, object] | None = None,
        *,
        patient: bool = True,
    ) -> None:
        """Into `broken`: running and waiting instructions end as lost, and the kept points are offered.

        Out of it again at once where the record has `resumed`: in the same transaction, or a server that dies in between would leave it broken.
        """
        self.housing.waiting = None
        record = self.dossier.record
        points = await self.housing.points_there()
        message = f"{error.message}. Points kept: {offer(points, record.head if arrow is Arrow.SNAPSHOT_BAD else None)}"
        self._agenda.clear(
            MachineBroken(f"the machine broke first: {message}") if resumed is None else SandboxLost(f"nothing was done: {error.message}")
        )
        ends = [Ended(instruction=n, end="lost", error=f"lost: {message}") for n in self._agenda.unended]
        detail = {"error": message, "points": [p.snapshot for p in points]}
        fields = {"error": message, "sandbox": None, **(resumed or {})}
        following = [] if resumed is None else [(Arrow.RESUMED, {"snapshot": record.head})]
        written = await self.dossier.write(arrow, set=fields, events=[*events, *ends], detail=detail, following=following, patient=patient)
        self._tell(written)
