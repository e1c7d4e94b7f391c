"""A whole server on the fake engine and a store in memory, that can be killed at any step and started again."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from everforge.egress.doors import EgressDoors
from everforge.egress.packages import PackageIndex, PipSettings
from everforge.engine.base import Image
from everforge.engine.fake import FakeEngine, FakeHost
from everforge.machines.forge import Forge
from everforge.machines.keeper import Keeper
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.machines.settings import MachineSettings
from everforge.machines.steps import Steps
from everforge.signals import Signals
from everforge.store.base import MachineQuery, Store
from everforge.store.disk import Disk
from everforge.store.memory import MemoryStore
from everforge.store.packs.packer import Packer, PackerProcess
from everforge.store.snapshots import PACKED_BYTES, SnapshotFolder
from everforge.wire.errors import ImageDamaged
from everforge.wire.ids import OWNER

from .faults import Faults, faulty_parts
from .folders import strangers

QUICK = MachineSettings(
    idle_seconds=60.0,
    timeout_seconds=5.0,
    interrupt_grace_seconds=0.2,
    kill_grace_seconds=0.2,
    guest_answer_seconds=2.0,
    wake_pause_seconds=0.001,
    save_retry_seconds=0.02,
    admission_seconds=0.3,
    stop_grace_seconds=0.1,
    pack_after_start_seconds=0.01,
    ready_sandboxes=0,
)


IN_MEMORY = "/dev/shm"  # nothing here is about disks, and syncing one takes most of the time


class Killed(BaseException):
    """The process is gone: nothing it does afterwards has an effect."""


FAKE_IMAGE = Image("fake-image", Path("/"))


@dataclass(frozen=True)
class FakeImage:
    image: Image = FAKE_IMAGE
    warm: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])


class FakeImages:
    """One image. What is wrong with it shows once it is scrubbed."""

    def __init__(self) -> None:
        self.wrong = ""
        self.found = ""
        self.scrubbed: asyncio.Queue[str] = asyncio.Queue()

    def find(self, name_or_digest: str) -> FakeImage:
        if self.found:
            raise ImageDamaged(self.found)
        return FakeImage()

    async def scrub(self, digest: str) -> None:
        self.found = self.wrong
        self.scrubbed.put_nowait(digest)
        if self.found:
            raise ImageDamaged(self.found)


class Life:
    """Whether a server still lives; and what it went through."""

    def __init__(self, kill_at: tuple[str, int] | None = None) -> None:
        self.dead = asyncio.Event()
        self.steps: list[str] = []
        self._kill_at = kill_at

    def listen(self, step: str) -> None:
        if self.dead.is_set():
            raise Killed
        self.steps.append(step)
        if self._kill_at is not None and (step, self.steps.count(step)) == self._kill_at:
            self.dead.set()
            raise Killed


class Mortal:
    """Whatever a server reaches the world through: after its death nothing passes."""

    def __init__(self, inner: Any, life: Life) -> None:
        self._inner = inner
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self._life.dead.is_set():
                raise Killed
            return _mortal(await found(*args, **kwargs), self._life)

        return call


def _mortal(value: Any, life: Life) -> Any:
    if hasattr(value, "destroy"):
        return Mortal(value, life)
    if isinstance(value, dict) and value and all(hasattr(v, "destroy") for v in value.values()):  # pyright: ignore[reportUnknownVariableType]
        return {k: Mortal(v, life) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


@cache
def keys_folder() -> Path:
    """For the keys of egress doors: made once, since making them costs more than most tests."""
    folder = tempfile.TemporaryDirectory(prefix="everforge-keys-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


class House:
    """The computer (fake host, store, folder) and the server that runs on it now."""

    def __init__(
        self,
        settings: MachineSettings = QUICK,
        store: Store | None = None,
        *,
        packed_bytes: int = PACKED_BYTES,
        packer: Callable[[], Packer] = PackerProcess,
        faults: Faults | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.settings = settings
        self._faults = faults
        self.host = FakeHost()
        self.images = FakeImages()
        self.folder = Path(tempfile.mkdtemp(prefix="everforge-house-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None))
        self.store: Store = store or MemoryStore()
        self._packed_bytes = packed_bytes  # what the fake engine saves is small: as a rule nothing of it is packed
        self._packer = packer
        self._disk = disk
        self.snapshots = self._new_snapshots()
        self.life = Life()
        self._keepers: list[Keeper] = []  # those that failed have left the server's own list
        self.machines = self._new(self.life)

    def _new_snapshots(self) -> SnapshotFolder:
        return SnapshotFolder(self.folder, disk=self._disk, packed_bytes=self._packed_bytes, packer=self._packer())

    def _new(self, life: Life) -> Machines:
        parts: dict[str, Any] = {
            "engine": Mortal(FakeEngine(self.host), life),
            "store": Mortal(self.store, life),
            "snapshots": Mortal(self.snapshots, life),
        }
        signals = Signals()
        forge = Forge(
            **(parts if self._faults is None else faulty_parts(self._faults, **parts)),
            images=self.images,
            settings=self.settings,
            host_memory_mb=64_000,
            steps=Steps(life.listen),
            doors=EgressDoors(self.store.egress, keys_folder(), index=PackageIndex(PipSettings()), signals=signals),
            signals=signals,
        )
        machines = Machines(forge)
        adopt = machines.forge.adopt

        def remember(record: Any) -> Keeper:
            self._keepers.append(keeper := adopt(record))
            return keeper

        machines.forge.adopt = remember
        return machines

    async def start(self, kill_at: tuple[str, int] | None = None) -> Machines:
        self.life = Life(kill_at)
        self.snapshots = self._new_snapshots()
        self.machines = self._new(self.life)
        await self.machines.forge.start()
        return self.machines

    async def kill(self) -> None:
        """As `kill -9` of the server: its tasks are gone, and none of their clean-up has any effect."""
        self.life.dead.set()
        for keeper in self._keepers:
            await _bury(keeper)
        self._keepers.clear()
        forge = self.machines.forge
        for task in forge._tasks:  # pyright: ignore[reportPrivateUsage]
            task.cancel()
        await asyncio.gather(forge.archive.close(), forge.image_scrub.close(), forge.expiry.close(), forge.undertaker.close())
        await self.snapshots.close()  # its threads may still be writing

    async def restart(self) -> Machines:
        await self.kill()
        return await self.start()

    async def close(self) -> None:
        await self.kill()
        self.host.lose_everything()
        shutil.rmtree(self.folder)

    # --- what must hold --------------------------------------------------------------------------------------------------------------------

    async def until(self, name: str, state: str) -> None:
        async with asyncio.timeout(5):
            while (await self.machines.get(name)).state != state:
                await asyncio.sleep(0.005)

    async def until_kept(self, name: str) -> None:
        async with asyncio.timeout(5):
            while self.machines.forge.kept(OWNER, name) is None:
                await asyncio.sleep(0.005)

    def folders(self) -> set[str]:
        return {p.name for p in self.folder.iterdir()}

    async def check_nothing_leaked(self) -> None:
        """Sandboxes belong to machines that have one; folders to points that exist. What is on its way may arrive first."""
        for _ in range(400):
            try:
                await self._check_nothing_leaked()
                return
            except AssertionError:
                await asyncio.sleep(0.005)
        await self._check_nothing_leaked()

    async def _check_nothing_leaked(self) -> None:
        records = [await self.store.machine(k) for k in [r.record.id for r in await self.machines.list(MachineQuery())]]
        claimed = {r.sandbox for r in records if r is not None and r.sandbox is not None}
        assert set(self.host.sandboxes) <= claimed, "a sandbox belongs to nobody"
        known = {str(s) for s in await self.store.referenced_snapshots()} | {str(s) for s in self.machines.forge.templates.in_use}
        assert strangers(self.folder, known) == set(), "a snapshot folder belongs to nobody"


async def _bury(keeper: Any) -> None:
    tasks = [keeper._task, *(keeper.residency.housing.incarnation._tasks if keeper.residency.housing.incarnation else [])]
    for task in tasks:
        if task is not None:
            task.cancel()
    for task in tasks:
        if task is not None:
            try:
                await asyncio.wait_for(asyncio.shield(asyncio.gather(task, return_exceptions=True)), 1)
            except (TimeoutError, Killed, asyncio.CancelledError):
                pass


def quick(**changes: Any) -> MachineSettings:
    return replace(QUICK, **changes)


__all__ = ["QUICK", "FakeHost", "House", "Killed", "NewMachine", "quick"]
