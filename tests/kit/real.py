"""Machines on the real engine: the image and its template are made once for a run of the tests, every test gets a data folder of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from everforge.egress.settings import EgressSettings
from everforge.engine.gvisor.supply import find_or_build
from everforge.engine.warden.folders import find as find_folders
from everforge.images.build import ensure
from everforge.images.catalogue import Catalogue
from everforge.machines.service import Machines
from everforge.machines.settings import MachineSettings
from everforge.machines.steps import Steps
from everforge.progress import Silent
from everforge.server.bootstrap import open_machines
from everforge.store.base import MachineQuery

LINGER_SECONDS = 1.0  # of a test's warden, once it holds nothing
TESTED = MachineSettings(image="minimal", memory_mb=512, ready_sandboxes=0, save_retry_seconds=0.5)


@cache
def template(image: str = "minimal", disk_mb: int = TESTED.disk_mb) -> Path:
    """The folder of a template's snapshot, made once; data folders of tests get it by hard links."""
    base = (
        Path(tempfile.gettempdir()) / f"ef-tests-{os.getuid()}-{os.getpid()}-{image}-{disk_mb}"
    )  # one each: a server sweeps away what it has no use for

    async def make() -> Path:
        settings = replace(TESTED, image=image, disk_mb=disk_mb)
        machines, folder = await open_machines(base, settings, warden_linger_seconds=LINGER_SECONDS)
        entry = ensure(image, Catalogue.here(), Silent())
        made = machines.forge.templates.id(entry.image.digest, disk_mb)
        await machines.forge.stop()
        folder.unlock()
        return folder.snapshots / made

    import atexit

    atexit.register(shutil.rmtree, base, ignore_errors=True)
    # In a thread: a test's own event loop may be running in this one.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(make())).result()


def give_template(data: Path, image: str = "minimal") -> None:
    made = template(image)
    given = data / "snapshots" / made.name
    if not given.exists():
        given.parent.mkdir(parents=True, exist_ok=True)
        same_disk = made.stat().st_dev == given.parent.stat().st_dev
        shutil.copytree(made, given, copy_function=os.link if same_disk else shutil.copy2)


@asynccontextmanager
async def real_machines(
    data: Path,
    settings: MachineSettings = TESTED,
    *,
    egress: EgressSettings | None = None,
    steps: Steps | None = None,
    keep: bool = False,
    stay: bool = False,
) -> AsyncGenerator[Machines]:
    """A server in this process. At the end its machines are deleted, unless they are to be kept asleep, or to stay awake for the next one."""
    give_template(data, settings.image)
    machines, folder = await open_machines(data, settings, egress=egress, steps=steps, warden_linger_seconds=LINGER_SECONDS)
    try:
        yield machines
    finally:
        if not (keep or stay):
            for view in await machines.list(MachineQuery()):
                await machines.delete(view.record.name)
        await machines.forge.stop(hibernate=keep)
        folder.unlock()


# --- what must not leak ----------------------------------------------------------------------------------------------------------------------


def processes_of(data: Path) -> dict[int, str]:
    """Everything on the host that names this data folder: warden, sentries, gofers."""
    found: dict[int, str] = {}
    needles = {os.fsencode(data.resolve()), os.fsencode(find_folders(data).run)}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()  # long: the id comes last
            except OSError:
                continue
            if any(n in command for n in needles):
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def sandboxes_of(data: Path) -> dict[int, str]:
    return {pid: command for pid, command in processes_of(data).items() if "everforge.engine.warden" not in command}


def cgroups_of(data: Path) -> list[str]:
    mark = find_folders(data).mark
    # os.walk, unlike glob, does not mind that cgroups of others vanish under it.
    return [f"{parent}/{name}" for parent, names, _ in os.walk("/sys/fs/cgroup") for name in names if mark in name]


def mounts_of(data: Path) -> list[str]:
    needles = (str(data.resolve()), str(find_folders(data).run))
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if any(n in line for n in needles)]


def descriptors(pid: int | None = None) -> int:
    return len(os.listdir(f"/proc/{pid or 'self'}/fd"))


async def until_gone(data: Path, seconds: float = 15.0) -> None:
    """No process, cgroup or mount of this data folder is left; waits for what is on its way out."""
    deadline = time.monotonic() + seconds
    while (left := [processes_of(data), cgroups_of(data), mounts_of(data)]) != [{}, [], []]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        await asyncio.sleep(0.05)


__all__ = ["TESTED", "Catalogue", "Silent", "ensure", "find_or_build"]
