"""The only place that knows concrete classes: puts engine, store, snapshots and images together into running machines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
from dataclasses import replace
from pathlib import Path

from everforge.egress.authorities import extra_certificates, host_bundle
from everforge.egress.doors import EgressDoors
from everforge.egress.packages import PackageIndex
from everforge.egress.settings import EgressSettings
from everforge.engine.base import Limits
from everforge.engine.gvisor.engine import LINGER_SECONDS, Gvisor
from everforge.engine.gvisor.supply import find_or_build
from everforge.folders import data_folder
from everforge.images.build import ensure
from everforge.images.catalogue import Catalogue, CataloguedImage
from everforge.images.scrub import WatchedImages
from everforge.machines.forge import Forge
from everforge.machines.service import Machines
from everforge.machines.settings import MachineSettings
from everforge.machines.steps import Steps
from everforge.machines.templates import Templates
from everforge.progress import Progress, Silent
from everforge.signals import Signals
from everforge.store.snapshots import SnapshotFolder
from everforge.store.sql.store import SqlStore
from everforge.wire.errors import DataFolderBusy, ImageDamaged

from . import caretaker
from .datafolder import DataFolder

log = logging.getLogger(__name__)

MAKING_LINGER_SECONDS = 1.0  # of the warden that a template is made with: no server is expected
CARETAKER_SECONDS = 60.0  # for a caretaker to put machines to sleep, or to find that it cannot
CARETAKER_PAUSE_SECONDS = 0.1
SYSTEMD_RUNS = Path("/run/systemd/system")  # by its own manual
SYSTEMD_ANSWER_SECONDS = 2.0


def host_memory_mb() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    raise RuntimeError("/proc/meminfo has no MemTotal")


async def host_is_stopping() -> bool:
    """Is the whole computer going down? As systemd says; elsewhere nobody can tell."""
    if not await asyncio.to_thread(SYSTEMD_RUNS.is_dir):
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            "systemctl", "is-system-running", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return False
    try:
        told, _ = await asyncio.wait_for(process.communicate(), SYSTEMD_ANSWER_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return False
    return told.strip() == b"stopping"


def allow_many_descriptors() -> None:
    """Each awake machine takes some five; the usual limit is meant for programs that wait on few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _lock(folder: DataFolder, caretaker_token: str) -> None:
    """The last server's caretaker may just be at work: that has an end, unlike a server."""
    loop = asyncio.get_running_loop()
    until = loop.time() + CARETAKER_SECONDS
    while True:
        try:
            return folder.lock(caretaker_token)
        except DataFolderBusy:
            if caretaker_token or not folder.has_caretaker or loop.time() > until:
                raise
            await asyncio.sleep(CARETAKER_PAUSE_SECONDS)


async def open_machines(
    data: Path | None = None,
    settings: MachineSettings | None = None,
    *,
    egress: EgressSettings | None = None,
    progress: Progress | None = None,
    steps: Steps | None = None,
    warden_linger_seconds: float = LINGER_SECONDS,
    for_new_machines: bool = True,
    caretaker_token: str = "",
) -> tuple[Machines, DataFolder]:
    """Lock the data folder, find or build what is needed, take over what lives. The caller stops the machines and unlocks the folder.

    `for_new_machines` also prepares the default image, its template, and sandboxes that wait for them. `caretaker_token` is for a caretaker who asks.
    """
    settings = settings or MachineSettings()
    progress = progress or Silent()
    async with contextlib.AsyncExitStack() as undo:
        folder = DataFolder((data or data_folder()).absolute())
        await _lock(folder, caretaker_token)
        undo.callback(folder.unlock)
        await asyncio.to_thread(folder.check_whole)
        allow_many_descriptors()
        runsc = await asyncio.to_thread(find_or_build, progress)
        catalogue = await asyncio.to_thread(Catalogue.here, folder.path)
        entry = await asyncio.to_thread(_image_of_new_machines, settings.image, catalogue, progress) if for_new_machines else None
        if entry is not None:  # by digest: another version of this program may give the name to an image of its own meanwhile
            settings = replace(settings, image=entry.image.digest)
        engine = await Gvisor.open(folder.path, runsc, catalogue.images, linger_seconds=warden_linger_seconds)
        undo.push_async_callback(engine.close)
        store = await SqlStore.open(folder.database)
        undo.push_async_callback(store.close)
        snapshots = SnapshotFolder(folder.snapshots)
        undo.push_async_callback(snapshots.close)
        signals = Signals()
        doors = await asyncio.to_thread(_doors, store, folder.path, egress, entry, signals)
        undo.push_async_callback(doors.close)
        forge = Forge(
            engine=engine,
            store=store,
            snapshots=snapshots,
            images=WatchedImages(catalogue),
            settings=settings,
            host_memory_mb=host_memory_mb(),
            steps=steps,
            doors=doors,
            signals=signals,
        )
        machines = Machines(forge)
        if entry is not None:
            machines.forge.templates.expect(entry.image.digest, settings.disk_mb)
        undo.push_async_callback(machines.forge.let_go)
        await machines.forge.start()
        if entry is not None:
            await _make_ready(machines, engine, folder, entry)
        undo.pop_all()
        return machines, folder


def _doors(store: SqlStore, folder: Path, settings: EgressSettings | None, entry: CataloguedImage | None, signals: Signals) -> EgressDoors:
    index = PackageIndex()
    image = entry.image.root / "etc/ssl/certs/ca-certificates.crt" if entry is not None else Path(os.devnull)
    extra = extra_certificates(host_bundle(index.settings.certificates), image) if entry is not None else ""
    return EgressDoors(store.egress, folder, settings, index, extra, signals=signals, spent=store.add_egress)


def _image_of_new_machines(name: str, catalogue: Catalogue, progress: Progress) -> CataloguedImage | None:
    """A damaged one is no reason to leave those who live without a server."""
    try:
        return ensure(name, catalogue, progress)
    except ImageDamaged as e:
        log.error("no new machines until then: %s", e.message)
        return None


async def make_template(data: Path, settings: MachineSettings) -> Path:
    """Only that: machines that are there are left as they are. Raises DataFolderBusy also when they are left to a caretaker."""
    folder = DataFolder(data)
    if folder.has_caretaker:
        raise DataFolderBusy(f"the machines in {folder.path} wait for the next server")
    async with contextlib.AsyncExitStack() as undo:
        folder.lock()
        undo.callback(folder.unlock)
        catalogue = await asyncio.to_thread(Catalogue.here, folder.path)
        entry = await asyncio.to_thread(ensure, settings.image, catalogue, Silent())
        runsc = await asyncio.to_thread(find_or_build, Silent())
        engine = await Gvisor.open(folder.path, runsc, catalogue.images, linger_seconds=MAKING_LINGER_SECONDS)
        undo.push_async_callback(engine.close)
        snapshots = SnapshotFolder(folder.snapshots)
        undo.push_async_callback(snapshots.close)
        template = await Templates(engine, snapshots).ensure(entry, settings.disk_mb)
        return folder.snapshots / template.snapshot


async def _make_ready(machines: Machines, engine: Gvisor, folder: DataFolder, entry: CataloguedImage) -> None:
    settings = machines.forge.settings
    template = await machines.forge.templates.ensure(entry, settings.disk_mb)
    if settings.ready_sandboxes:
        limits = Limits(memory_mb=settings.memory_mb, cpus=settings.cpus, processes=settings.processes, disk_mb=settings.disk_mb)
        await engine.keep_ready(entry.image, folder.snapshots / template.snapshot, limits, settings.ready_sandboxes)


async def close_machines(machines: Machines, folder: DataFolder) -> None:
    """An orderly stop: hibernate everything, or leave it to the next server for a while, with a caretaker who hibernates it if none comes.

    What cannot be hibernated, as on a full disk or while an instruction runs, is left to a caretaker too, who goes on trying. Unless the computer
    itself is going down: then nothing is left awake.
    """
    last = await host_is_stopping()
    hand_over = machines.forge.settings.handover_seconds > 0 and not last
    awake = bool(len(machines.forge.keepers))
    try:
        left = await machines.forge.stop(hibernate=not hand_over, at_any_price=last)
        if left or (hand_over and awake):
            await caretaker.leave(folder, machines.forge.settings)
    finally:
        folder.unlock()
