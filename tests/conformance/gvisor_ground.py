"""A data folder of its own for the real engine, and a count of everything that could be left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from everforge.engine.base import Image, Sandbox
from everforge.engine.gvisor.engine import Gvisor
from everforge.engine.gvisor.pools import PoolSettings
from everforge.engine.warden import folders, processes
from everforge.wire.ids import new_snapshot_id

GONE_SECONDS = 20.0
LINGER_SECONDS = 0.2


class GvisorGround:
    def __init__(self, data: Path, runsc: Path, image: Image, pool: PoolSettings) -> None:
        self.data = data
        self.image = image
        self._runsc = runsc
        self._pool = pool
        self._descriptors = 0
        self.engine: Gvisor

    async def open(self) -> Gvisor:
        images = self.image.root.parent.parent
        self.engine = await Gvisor.open(self.data, self._runsc, images, pool=self._pool, linger_seconds=LINGER_SECONDS)
        self._descriptors = self._descriptors or _open_descriptors()
        return self.engine

    async def reopen(self) -> Gvisor:
        await self.engine.close()
        return await self.open()

    def new_folder(self) -> Path:
        folder = self.data / "snapshots" / new_snapshot_id()
        folder.mkdir()
        return folder

    @property
    def places(self) -> folders.Folders:
        return folders.find(self.data)

    def pids(self, sandbox: Sandbox) -> tuple[int, int]:
        found = processes.recorded(sandbox.id, self.places.state)
        assert found is not None
        return found

    async def crash(self, sandbox: Sandbox) -> None:
        os.kill(self.pids(sandbox)[0], signal.SIGKILL)

    async def close(self) -> None:
        """Ends everything, and asserts that the warden ends by itself and takes its folder, its cgroups and its mounts along."""
        for sandbox in (await self.engine.survivors()).values():
            await sandbox.destroy()
        await self.engine.close()
        await until(lambda: not self.places.run.exists())
        self._assert_clear()

    def _assert_clear(self) -> None:
        assert not self.cgroups()
        assert str(self.data) not in Path("/proc/self/mountinfo").read_text()
        assert not list(self.places.disks.iterdir())

    async def leaves_nothing(self) -> None:
        """But what waits in pools: that is asked to go first."""
        await self.engine.give_up_pools()
        await until(lambda: not processes.scan(self.places.state))
        await until(lambda: not self.cgroups())
        places = self.places
        await until(lambda: not [file for folder in (places.bundles, places.logs, places.disks, places.state) for file in folder.iterdir()])
        await until(lambda: _open_descriptors() <= self._descriptors)

    def cgroups(self) -> list[Path]:
        """Of single sandboxes, in any hierarchy of version 1 or in version 2."""
        name = f"everforge-{self.places.mark}-*"
        return [*Path("/sys/fs/cgroup").glob(f"*/{name}"), *Path("/sys/fs/cgroup").glob(name)]


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + GONE_SECONDS
    while not holds():
        assert time.monotonic() < until, "something was left behind"
        await asyncio.sleep(0.02)
