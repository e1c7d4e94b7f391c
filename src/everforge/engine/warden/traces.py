"""What a sandbox leaves on the host, and how it is removed: the same way for one that was destroyed and for one that a crash left behind.

`runsc delete` would do it too, in 15 to 25 ms; killing, reaping and unlinking by ourselves takes a third of that, and also sees what runsc forgot.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress

from everforge.wire.ids import SANDBOX_ID

from . import processes
from .cgroups import Cgroups
from .folders import Folders
from .processes import Process

KILL_SECONDS = 60.0  # freeing gigabytes of memory takes a while, and a crash may have left many sandboxes
LOOK_AGAIN_SECONDS = 0.01


class Traces:
    def __init__(self, folders: Folders, cgroups: Cgroups | None) -> None:
        self._folders = folders
        self._cgroups = cgroups

    async def kill_all(self, id: str) -> None:
        """Every process of a sandbox, also those that runsc did not write down."""
        await self._end(lambda found: found == id)

    async def _end(self, wanted: Callable[[str], bool]) -> set[str]:
        """Kill what these sandboxes run, and look again: a command starts others, and what is just being started shows no arguments.
        Returns those that there were."""
        ended: set[str] = set()
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_SECONDS):
                while living := {id: pids for id, pids in processes.scan(self._folders.state).items() if wanted(id)}:
                    ended |= set(living)
                    for id, pids in living.items():
                        await self._kill(id, pids)
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)
        return ended

    async def _kill(self, id: str, pids: list[int]) -> None:
        found: list[Process] = []
        try:
            for pid in pids:
                process = Process.open(pid, id, self._folders.state)
                if process is not None:
                    found.append(process)
                    process.kill()
            for process in found:
                await process.ended()
        finally:
            for process in found:
                process.close()

    async def erase(self, id: str) -> None:
        """Its files and control groups; the processes are gone."""
        for name in (f"{id}_sandbox:{id}.state", f"{id}_sandbox:{id}.lock", f"runsc-{id}.sock"):
            (self._folders.state / name).unlink(missing_ok=True)
        shutil.rmtree(self._folders.bundles / id, ignore_errors=True)
        (self._folders.logs / f"{id}.log").unlink(missing_ok=True)
        if self._cgroups is not None:
            await self._cgroups.remove(id)

    async def sweep(self, held: Collection[str]) -> int:
        """End and remove every sandbox of this data folder that is not held. Returns how many there were."""
        strays = await self._end(lambda found: found not in held)
        strays |= {id for id in self._named() if id not in held}
        for id in strays:
            await self.erase(id)
        if not held:
            for file in self._folders.disks.iterdir():  # a file that a crash left between its making and its unlinking
                file.unlink(missing_ok=True)
        return len(strays)

    def _named(self) -> set[str]:
        """Ids that files or control groups are named after."""
        folders = self._folders
        names = [entry.name.removesuffix(".log") for folder in (folders.bundles, folders.logs) for entry in folder.iterdir()]
        names += [entry.name.removeprefix("runsc-").removesuffix(".sock").split("_")[0] for entry in folders.state.iterdir()]
        names += self._cgroups.strays() if self._cgroups else set()
        return {name for name in names if SANDBOX_ID.fullmatch(name)}

    def clear(self) -> None:
        """Everything outside of the data folder's own contents; called when nothing is held."""
        if self._cgroups is not None:
            self._cgroups.remove_home()
        shutil.rmtree(self._folders.run, ignore_errors=True)
