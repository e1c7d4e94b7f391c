"""What all machines of one server share: its parts, its keepers, its life. Who may ask for what is decided at the doors of accounts (service.py)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from everforge.clocks import steady_clock
from everforge.engine.base import Engine
from everforge.signals import Signals
from everforge.store.base import MachineRecord, Snapshots, Store
from everforge.store.quotas import NoQuotas, Quota, Quotas
from everforge.wire.errors import DiskFull, InvalidInput, MachineNotFound, Stopping, Uncertain
from everforge.wire.ids import AccountId, MachineId, MachineName, machine_name

from . import deletion, recover
from .admission import Admission
from .agenda import Agenda
from .archive import Archive
from .doors import Doors, NoDoors
from .dossier import Dossier
from .expiry import Expiry
from .housing import Housing
from .keeper import Keeper
from .keepers import Keepers
from .keys import RequestKeys
from .locks import Locks
from .residency import Residency
from .saver import Saver
from .scrub import ImageScrub
from .settings import MachineSettings, check
from .steps import Steps
from .tape import TapeReaders
from .templates import Images, KnownImages, Templates
from .undertaker import Undertaker
from .weir import Weir

log = logging.getLogger(__name__)
REOPEN_PAUSES_SECONDS = (0.1, 1.0, 5.0, 30.0, 120.0)  # tries to take a machine over again after its keeper failed, or its recovery


class Forge:
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
        doors: Doors | None = None,
        signals: Signals | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        check(settings)
        self.engine = engine
        self.store = store
        self.snapshots = snapshots
        self.images = KnownImages(images)
        self.settings = settings
        self.doors: Doors = doors or NoDoors()
        self.templates = Templates(engine, snapshots)
        self.image_scrub = ImageScrub(store, self.images, settings)
        self.steps = steps or Steps()
        self.undertaker = Undertaker()
        self.weir = Weir()
        self.signals = signals or Signals()
        self.quotas = quotas or NoQuotas()  # a server has those of its accounts
        self.archive = Archive(store, snapshots, self.templates, self.steps)
        self.readers = TapeReaders(store, settings.tape_recent_events)
        self.keepers = Keepers()
        budget_mb = settings.host_memory_mb or host_memory_mb * 3 // 4
        self.admission = Admission(int(budget_mb * settings.memory_overcommit), self.keepers.all)
        self._opening = Locks()  # one at a time opens or deletes a machine
        self._steady = steady_clock()
        self.keys = RequestKeys(store, self._steady)
        self.expiry = Expiry(store, self.delete)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self.why_gone = recover.LOST_WITH_ITS_PROCESS  # what a machine that should be awake and is not died of

    # --- a server's life -----------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take over what still lives, put right what a crash left half done."""
        await recover.recover(self)
        self.archive.look_around(self.settings.pack_after_start_seconds)
        self.image_scrub.begin()
        self.expiry.begin()

    async def stop(self, *, hibernate: bool = True, at_any_price: bool = False) -> Sequence[MachineName]:
        """Orderly: hibernate everything that does not run, and at any price what does; or leave all to the warden for the next server.

        Returns those that are awake still.
        """
        self._stopping = True
        await self.expiry.close()
        if hibernate:
            await asyncio.gather(*(k.settle(at_any_price=at_any_price) for k in self.keepers.all()))
        left = [k.dossier.record.name for k in self.keepers.all() if k.residency.housing.incarnation is not None]
        try:
            await self.let_go()
        finally:
            await self._close()
        return left

    async def _close(self) -> None:
        await self.signals.settled()
        await self.doors.close()  # before the store: what machines have tried is written to it
        for error in await asyncio.gather(self.engine.close(), self.snapshots.close(), self.store.close(), return_exceptions=True):
            if isinstance(error, DiskFull):
                log.error("the orderly end of the server could not be recorded; nothing else is lost: %s", error.message)
            elif error is not None:
                raise error

    async def let_go(self) -> None:
        """Stop every keeper where it is; the machines stay as they are."""
        self._stopping = True
        await self.expiry.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        keepers = self.keepers.all()
        await asyncio.gather(*(k.stop() for k in keepers))
        await asyncio.gather(self.archive.close(), self.image_scrub.close(), self.undertaker.close())
        for keeper in keepers:
            keeper.give_up(Uncertain("the server is stopping; what was accepted is on the tape", position=None))

    # --- machines ------------------------------------------------------------------------------------------------------------------------

    def check_running(self) -> None:
        if self._stopping:
            raise Stopping("the server is stopping; try again in a moment")

    async def record(self, account: AccountId, name: str) -> MachineRecord:
        """Raises InvalidInput, MachineNotFound; the machines of others are not there."""
        record = await self.store.find(account, machine_name(name))
        if record is None:
            raise MachineNotFound(f"there is no machine {name}")
        return record

    async def has(self, account: AccountId, name: str) -> bool:
        """Of whatever somebody takes for a name."""
        try:
            return self.kept(account, name) is not None or await self.store.find(account, machine_name(name)) is not None
        except InvalidInput:
            return False

    def kept(self, account: AccountId, name: str) -> Keeper | None:
        """Its keeper, if it has one now."""
        return self.keepers.named(account, name)

    async def keeper(self, account: AccountId, name: str) -> Keeper:
        """Its keeper, found or started."""
        self.check_running()
        if keeper := self.kept(account, name):
            return keeper
        record = await self.record(account, name)
        async with self._opening.of(record.id):
            if keeper := self.keepers.get(record.id):
                return keeper
            fresh = await self.store.machine(record.id)
            if fresh is None or fresh.deleted_at is not None:
                raise MachineNotFound(f"there is no machine {name}")
            return await recover.open_keeper(self, fresh)

    async def delete(self, record: MachineRecord) -> None:
        """At once, whatever it is doing; and to its end, also when the caller goes away."""
        await asyncio.shield(self._own(self._delete(record)))

    async def _delete(self, record: MachineRecord) -> None:
        async with self._opening.of(record.id):
            await deletion.delete(self, record)

    async def quota(self, account: AccountId) -> Quota:
        return await self.quotas.of(account)

    def begin(self, record: MachineRecord) -> Keeper:
        """A keeper for a machine that was just recorded."""
        keeper = self.adopt(record)
        self.keepers.add(keeper)
        keeper.start()
        return keeper

    def adopt(self, record: MachineRecord) -> Keeper:
        """A keeper for a record. It is added to the others, where callers find it, when what was accepted earlier stands on its agenda."""
        dossier = Dossier(record, self.store, self.readers, self.steps, self.signals)
        saver = Saver(dossier, self.engine, self.snapshots, self.settings, self._steady)
        housing = Housing(
            dossier,
            saver,
            self.engine,
            self.snapshots,
            self.images,
            self.templates,
            self.archive,
            self.undertaker,
            self.settings,
            self.doors,
            self.weir,
        )
        agenda = Agenda(self.settings.queue_max)
        residency = Residency(dossier, housing, agenda, self.admission, self.settings, self.quota)
        keeper = Keeper(dossier, residency, agenda, self.settings)
        keeper.retired = lambda: self._forget(keeper)
        return keeper

    def _forget(self, keeper: Keeper) -> None:
        self.keepers.remove(keeper)
        if keeper.failed:
            self.reopen(keeper.id)

    def reopen(self, id: MachineId) -> None:
        """In the background, and more than once."""
        if not self._stopping:
            self._own(self._reopen(id))

    async def _reopen(self, id: MachineId) -> None:
        """After a mistake of ours, or of the disk: a machine must not stay without its deadlines, its idle sleep and its place in admission."""
        pauses = list(REOPEN_PAUSES_SECONDS)
        while pauses:
            pause = pauses.pop(0)
            await asyncio.sleep(pause)
            try:
                async with self._opening.of(id):
                    record = await self.store.machine(id)
                    if id in self.keepers or record is None or record.deleted_at is not None:
                        return
                    await recover.open_keeper(self, record)
                    return
            except DiskFull as e:
                log.warning("machine %s waits for room on the disk: %s", id, e.message)
                pauses = pauses or [pause]  # which comes, sooner or later
            except Exception:
                log.exception("machine %s could not be opened again", id)

    def _own(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
