"""The door to machines: what a server, a script or a test calls. Finds or starts the keeper, and lets it do the work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everforge.engine.base import Engine
from everforge.store.base import Durability, History, MachineQuery, MachineRecord, PointRecord, Snapshots, Store
from everforge.store.threads import to_its_end
from everforge.wire.errors import DiskFull, InvalidInput, MachineNotFound, NameTaken, Refused, Uncertain
from everforge.wire.events import START, Ended, Event, Position
from everforge.wire.ids import AccountId, MachineId, MachineName, SnapshotId, machine_name, new_machine_name

from . import deletion, forks, marks, recover, requests
from .admission import Admission
from .agenda import Agenda
from .archive import Archive
from .creation import first_point, new_record
from .dossier import Dossier
from .housing import Housing
from .keeper import Keeper
from .keepers import Keepers, OpeningLocks
from .lifecycle import Residence, Turn, state
from .points import Target
from .requests import NewMachine
from .residency import Residency
from .scrub import ImageScrub
from .settings import MachineSettings, check
from .steps import Steps
from .tape import TapeReaders
from .templates import Images, KnownImages, Templates

log = logging.getLogger(__name__)
INSTRUCTION_MAX = 2**62
REOPEN_PAUSES_SECONDS = (0.1, 1.0, 5.0, 30.0, 120.0)  # tries to take a machine over again after its keeper failed

OWNER = AccountId("owner")  # the only account until accounts come


@dataclass(frozen=True, slots=True)
class MachineView:
    """A machine as its owner sees it."""

    record: MachineRecord
    state: str
    pending: int  # instructions accepted and not ended


@dataclass(frozen=True, slots=True)
class RolledBack:
    point: PointRecord
    undo: SnapshotId | None  # the point that brings back what was before; None where there was nothing


class Machines:
    def __init__(
        self,
        *,
        engine: Engine,
        store: Store,
        snapshots: Snapshots,
        images: Images,
        settings: MachineSettings,
        host_memory_mb: int,
        steps: Steps | None = None,
    ) -> None:
        check(settings)
        self.engine = engine
        self.store = store
        self.snapshots = snapshots
        self.images = KnownImages(images)
        self.settings = settings
        self.templates = Templates(engine, snapshots)
        self.image_scrub = ImageScrub(store, self.images, settings)
        self.steps = steps or Steps()
        self.archive = Archive(store, snapshots, self.templates, self.steps)
        self.readers = TapeReaders(store, settings.tape_recent_events)
        self.keepers = Keepers()
        budget_mb = settings.host_memory_mb or host_memory_mb * 3 // 4
        self.admission = Admission(int(budget_mb * settings.memory_overcommit), self.keepers.all)
        self._opening = OpeningLocks()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self.why_gone = recover.LOST_WITH_ITS_PROCESS  # what a machine that should be awake and is not died of

    # --- a server's life -----------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take over what still lives, put right what a crash left half done."""
        await recover.recover(self)
        self.archive.look_around(self.settings.pack_after_start_seconds)
        self.image_scrub.begin()

    async def stop(self, *, hibernate: bool = True) -> Sequence[MachineName]:
        """Orderly: hibernate everything; or leave the machines to the warden for the next server. Returns those that are awake still."""
        self._stopping = True
        if hibernate:
            await asyncio.gather(*(k.settle() for k in self.keepers.all()))
        left = [k.dossier.record.name for k in self.keepers.all() if k.residency.housing.incarnation is not None]
        try:
            await self.let_go()
        finally:
            await self._close()
        return left

    async def _close(self) -> None:
        for error in await asyncio.gather(self.engine.close(), self.snapshots.close(), self.store.close(), return_exceptions=True):
            if isinstance(error, DiskFull):
                log.error("the orderly end of the server could not be recorded; nothing else is lost: %s", error.message)
            elif error is not None:
                raise error

    async def let_go(self) -> None:
        """Stop every keeper where it is; the machines stay as they are."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        keepers = self.keepers.all()
        await asyncio.gather(*(k.stop() for k in keepers))
        await asyncio.gather(self.archive.close(), self.image_scrub.close())
        for keeper in keepers:
            keeper.give_up(Uncertain("the server is stopping; what was accepted is on the tape", position=None))

    # --- machines ------------------------------------------------------------------------------------------------------------------------

    async def create(self, wanted: NewMachine | None = None, account: AccountId = OWNER) -> MachineView:
        """Answers as soon as the machine is recorded; it is started behind the answer."""
        self._check_running()
        wanted = NewMachine() if wanted is None else wanted
        if not isinstance(wanted, NewMachine):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidInput(f"a new machine is described by NewMachine, not by {type(wanted).__name__}")
        record = new_record(wanted, account, self.settings, self.engine.name)
        entry = await self.images.find(requests.image(self.settings.image if wanted.image is None else wanted.image))
        if record.memory_mb > self.admission.budget_mb:
            raise InvalidInput(f"memory_mb is {record.memory_mb}, but this server has {self.admission.budget_mb} MB for all its machines")
        template = self.templates.id(entry.image.digest, record.disk_mb)  # made behind the answer, if it is not there yet
        record = replace(record, image=entry.image.digest, head=template)
        point = first_point(record, template, "template", START, None)
        with self.steps.step("record new machine"):
            await self.store.create(record, points=[point])
        keeper = self.adopt(record)
        self.keepers.add(keeper)
        keeper.start()
        return self._view(keeper.dossier.record, keeper)

    async def get(self, name: str) -> MachineView:
        record = await self._record(name)
        keeper = self.keepers.get(record.id)
        return self._view(keeper.dossier.present if keeper else record, keeper)

    async def list(self, query: MachineQuery) -> Sequence[MachineView]:
        requests.query(query)
        return [self._view(k.dossier.present if (k := self.keepers.get(r.id)) else r, k) for r in await self.store.machines(query)]

    async def update(
        self,
        name: str,
        *,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idle_seconds: float | None = None,
        history: History | None = None,
        durability: Durability | None = None,
    ) -> MachineView:
        s = self.settings
        fields: dict[str, Any] = {}
        if tags is not None:
            fields["tags"] = requests.tags(tags, s)
        if metadata is not None:
            fields["metadata"] = requests.metadata(metadata, s)
        if idle_seconds is not None:
            fields["idle_seconds"] = requests.seconds("idle_seconds", idle_seconds, 0.01, s.idle_seconds_max)
        if history is not None:
            fields["history"] = requests.one_of("history", history, History)
        if durability is not None:
            fields["durability"] = requests.one_of("durability", durability, Durability)
        keeper = await self._keeper(name)
        with keeper.pinned():
            await to_its_end(keeper.dossier.write(set=fields, step="update", patient=False))
            keeper.look_again()
        return self._view(keeper.dossier.present, keeper)

    async def delete(self, name: str) -> None:
        """At once, whatever it is doing: what runs or waits ends as cancelled."""
        record = await self._record(name)
        await asyncio.shield(self._own(self._delete(record)))  # a caller that goes away must not leave it half done

    async def _delete(self, record: MachineRecord) -> None:
        async with self._opening.of(record.id):
            await deletion.delete(self, record)

    # --- instructions --------------------------------------------------------------------------------------------------------------------

    async def exec(
        self, name: str, code: str, *, timeout_seconds: float | None = None, interrupt: bool = False, key: str | None = None
    ) -> tuple[int, bool]:
        """Accepted: its number, and whether something was interrupted for it. The machine may still be asleep."""
        self._check_running()
        code = requests.code(code, self.settings)
        key = requests.key(key)
        seconds = self._timeout(timeout_seconds)
        keeper = await self._keeper(name)
        interrupted = interrupt and keeper.interrupt(pending=True)
        return await keeper.accept(code, seconds, key), interrupted

    def _timeout(self, seconds: float | None) -> float:
        wanted = self.settings.timeout_seconds if seconds is None else seconds
        return requests.seconds("timeout_seconds", wanted, 0.001, self.settings.timeout_seconds_max)

    async def result(self, name: str, instruction: int) -> Ended:
        """Waits for the end of an instruction."""
        requests.whole("instruction", instruction, 0, INSTRUCTION_MAX, "")
        keeper = await self._keeper(name)
        with keeper.pinned():
            return await keeper.end_of(instruction)

    async def run(self, name: str, code: str, *, timeout_seconds: float | None = None) -> Ended:
        """Exec, then its result."""
        self._check_running()
        code, seconds = requests.code(code, self.settings), self._timeout(timeout_seconds)
        keeper = await self._keeper(name)
        with keeper.pinned():
            return await keeper.end_of(await keeper.accept(code, seconds, None))

    async def interrupt(self, name: str, *, pending: bool = False) -> bool:
        if keeper := self.keepers.named(name):
            return keeper.interrupt(pending=pending)
        await self._record(name)
        return False  # nobody keeps it awake, so nothing runs

    async def read(self, name: str, after: int = START, *, follow: bool = False) -> AsyncIterator[Event]:
        """The tape after a position; with `follow` for as long as the machine lives."""
        requests.whole("after", after, START, INSTRUCTION_MAX, "")
        record = await self._record(name)
        async with contextlib.aclosing(self.readers.read(record.id, Position(after), follow=follow)) as events:
            async for event in events:
                yield event

    # --- the machine itself --------------------------------------------------------------------------------------------------------------

    async def hibernate(self, name: str) -> None:
        keeper = await self._keeper(name)
        await keeper.operate("hibernate", keeper.residency.hibernate)

    async def wake(self, name: str) -> None:
        keeper = await self._keeper(name)
        await keeper.operate("wake", keeper.residency.ensure_awake)

    async def snapshot(self, name: str, snapshot_name: str | None = None) -> PointRecord:
        """A point to come back to. A named one is kept until it is forgotten or the machine is deleted."""
        label = requests.snapshot_name(snapshot_name)
        keeper = await self._keeper(name)
        return await keeper.operate("snapshot", lambda: marks.snapshot(keeper, label, self.settings.named_points_max))

    async def forget(self, name: str, snapshot: str) -> None:
        """Let a point go, by its id or name. What the machine itself needs stays, and only loses its name."""
        wanted = requests.snapshot(snapshot)
        keeper = await self._keeper(name)
        await keeper.operate("forget", lambda: marks.forget(keeper, wanted))

    async def points(self, name: str) -> Sequence[PointRecord]:
        return await self.store.points((await self._record(name)).id)

    async def rollback(self, name: str, *, snapshot: str | None = None, instruction: int | None = None) -> RolledBack:
        """To a snapshot (id or name), to the state after an instruction, or with neither to the newest point. Undone by rolling back to `undo`."""
        if instruction is not None:
            requests.whole("instruction", instruction, 0, INSTRUCTION_MAX, "")
        target = Target(None if snapshot is None else requests.snapshot(snapshot), instruction)
        keeper = await self._keeper(name)
        return RolledBack(*await keeper.operate("rollback", lambda: keeper.residency.roll_back(target)))

    async def reset(self, name: str) -> SnapshotId | None:
        """Fresh from its image's template; returns the point that undoes it."""
        keeper = await self._keeper(name)
        return await keeper.operate("reset", lambda: forks.reset(self, keeper))

    async def fork(self, name: str, *, count: int = 1, names: Sequence[str] | None = None) -> Sequence[MachineView]:
        """New machines that go on from where this one is. However many, the source is stopped for one save only; a sleeping one is not woken."""
        self._check_running()
        wanted = self._fork_names(count, names)
        for taken in wanted:
            if wanted.count(taken) > 1 or await self.store.find(taken):
                raise NameTaken(f"there is a machine {taken} already")
        keeper = await self._keeper(name)
        records = await keeper.operate("fork", lambda: forks.fork(keeper, wanted))
        return [self._view(record, None) for record in records]

    def _fork_names(self, count: int, names: Sequence[str] | None) -> list[MachineName]:
        if names is None:
            requests.whole("count", count, 1, self.settings.forks_max, "forks")
            return [new_machine_name() for _ in range(count)]
        if isinstance(names, str) or not isinstance(names, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("names must be a list of names for the forks")
        requests.whole("the number of names", len(names), 1, self.settings.forks_max, "forks")
        return [machine_name(n) for n in names]

    async def memory_bytes(self, name: str) -> int:
        """Of the host, now; 0 for one that sleeps."""
        keeper = self.keepers.get((await self._record(name)).id)
        incarnation = keeper.residency.housing.incarnation if keeper else None
        return await incarnation.sandbox.memory_bytes() if incarnation else 0

    # --- parts ---------------------------------------------------------------------------------------------------------------------------

    def _check_running(self) -> None:
        if self._stopping:
            raise Refused("the server is stopping")

    async def _record(self, name: str) -> MachineRecord:
        """Raises InvalidInput, MachineNotFound."""
        record = await self.store.find(machine_name(name))
        if record is None:
            raise MachineNotFound(f"there is no machine {name}")
        return record

    async def _keeper(self, name: str) -> Keeper:
        self._check_running()
        if keeper := self.keepers.named(name):
            return keeper
        record = await self._record(name)
        async with self._opening.of(record.id):
            if keeper := self.keepers.get(record.id):
                return keeper
            fresh = await self.store.machine(record.id)
            if fresh is None or fresh.deleted_at is not None:
                raise MachineNotFound(f"there is no machine {name}")
            return await recover.open_keeper(self, fresh)

    def adopt(self, record: MachineRecord) -> Keeper:
        """A keeper for a record. It is added to the others, where callers find it, when what was accepted earlier stands on its agenda."""
        dossier = Dossier(record, self.store, self.readers, self.steps)
        housing = Housing(dossier, self.engine, self.snapshots, self.images, self.templates, self.archive, self.settings)
        agenda = Agenda(self.settings.queue_max)
        residency = Residency(dossier, housing, agenda, self.admission, self.settings)
        keeper = Keeper(dossier, residency, agenda, self.settings)
        keeper.retired = lambda: self._forget(keeper)
        return keeper

    def _forget(self, keeper: Keeper) -> None:
        self.keepers.remove(keeper)
        if keeper.failed and not self._stopping:
            self._own(self._reopen(keeper.id))

    async def _reopen(self, id: MachineId) -> None:
        """After a mistake of ours: a machine must not stay without its deadlines, its idle sleep and its place in admission."""
        for pause in REOPEN_PAUSES_SECONDS:
            await asyncio.sleep(pause)
            try:
                async with self._opening.of(id):
                    record = await self.store.machine(id)
                    if id in self.keepers or record is None or record.deleted_at is not None:
                        return
                    await recover.open_keeper(self, record)
                    return
            except Exception:
                log.exception("machine %s could not be opened again", id)

    def _own(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _view(self, record: MachineRecord, keeper: Keeper | None) -> MachineView:
        turn = keeper.turn if keeper else Turn.IDLE
        return MachineView(record, state(Residence(record.residence), turn), keeper.pending if keeper else 0)


__all__ = ["MachineName", "MachineView", "Machines", "RolledBack"]
