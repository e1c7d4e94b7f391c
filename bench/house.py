"""Our side: machines as a server has them, in a data folder of its own, and raw sandboxes beside them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from everforge.engine.base import Image, Limits
from everforge.engine.gvisor.binaries import Binaries
from everforge.engine.gvisor.engine import Gvisor
from everforge.engine.warden.folders import find as find_folders
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.machines.settings import MachineSettings
from everforge.machines.steps import Steps
from everforge.progress import Progress
from everforge.server.bootstrap import close_machines, open_machines
from everforge.store.base import MachineQuery
from everforge.wire.ids import SnapshotId

from .raw import Raw

SETTLE_SECONDS = 60.0
QUIET_SECONDS = 0.15  # after something was destroyed or made: the kernel is still tidying up
LINGER_SECONDS = 0.2  # of the warden, once it holds nothing
SETTINGS = MachineSettings(image="default", ready_sandboxes=0, idle_seconds=3600.0)


class Marks:
    """When each step of a keeper began and ended."""

    def __init__(self) -> None:
        self._taken: list[tuple[str, float]] = []

    def listen(self, name: str) -> None:
        self._taken.append((name, time.perf_counter()))

    def clear(self) -> None:
        self._taken.clear()

    def first(self, name: str) -> float:
        return next(at for found, at in self._taken if found == name)

    @property
    def all(self) -> list[tuple[str, float]]:
        return list(self._taken)


@dataclass(frozen=True, slots=True)
class House:
    machines: Machines
    engine: Gvisor
    raw: Raw
    marks: Marks
    image: Image
    limits: Limits
    snapshots: Path
    template: Path
    folder: Path  # for whatever a measurement writes; beside the snapshots, on the same disk

    async def new(self, code: str = "") -> str:
        """A machine, awake, that has run this."""
        name = str((await self.machines.create(NewMachine())).record.name)
        await self.run(name, code or "None")
        return name

    async def run(self, name: str, code: str) -> str | None:
        ended = await self.machines.run(name, code)
        if ended.end != "value":
            raise RuntimeError(f"{name}: {ended.error}")
        return ended.value

    async def head(self, name: str) -> Path:
        """The folder of its newest snapshot."""
        head: SnapshotId | None = (await self.machines.get(name)).record.head
        assert head is not None
        return self.snapshots / head

    async def settle(self, *, ahead: bool) -> None:
        """Wait until everything is there that the engine makes ahead; or have it give that up."""
        if ahead:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self.engine.pools_filled()
        else:
            await self.engine.give_up_pools()
        await asyncio.sleep(QUIET_SECONDS)

    async def delete_all(self) -> None:
        for view in await self.machines.list(MachineQuery()):
            await self.machines.delete(view.record.name)


@asynccontextmanager
async def opened(progress: Progress, parent: Path | None = None) -> AsyncGenerator[House]:
    folder = await asyncio.to_thread(_new_folder, parent)
    try:
        async with _running(folder, progress) as house:
            yield house
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


@asynccontextmanager
async def _running(folder: Path, progress: Progress) -> AsyncGenerator[House]:
    marks = Marks()
    progress.step("starting the warden, making the template")
    machines, data = await open_machines(
        folder / "data", SETTINGS, progress=progress, steps=Steps(marks.listen), warden_linger_seconds=LINGER_SECONDS
    )
    raw: Raw | None = None
    try:
        engine = machines.forge.engine
        assert isinstance(engine, Gvisor)
        image = (await machines.forge.images.find(SETTINGS.image)).image
        limits = Limits(memory_mb=SETTINGS.memory_mb, cpus=SETTINGS.cpus, processes=SETTINGS.processes, disk_mb=SETTINGS.disk_mb)
        template = data.snapshots / machines.forge.templates.id(image.digest, SETTINGS.disk_mb)
        engines = find_folders(data.path).engines
        [runsc] = engines.glob("*/runsc")
        raw = Raw(folder / "raw", runsc, image.root.resolve(), limits, direct=(await Binaries.open(engines, runsc)).present.direct)
        (folder / "work").mkdir()
        house = House(machines, engine, raw, marks, image, limits, data.snapshots, template, folder / "work")
        yield house
        await house.delete_all()
    finally:
        if raw is not None:
            await raw.close()
        await close_machines(machines, data)
        run = find_folders(data.path).run
        await until(lambda: not run.exists())  # the warden ends when it holds nothing, and takes its folder along


def _new_folder(parent: Path | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="everforge-bench-", dir=parent)).resolve()


async def until(is_so: Callable[[], bool]) -> None:
    """Nothing tells of these conditions, so they are looked at again and again."""
    async with asyncio.timeout(SETTLE_SECONDS):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
