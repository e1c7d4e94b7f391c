"""R: runsc by hand. The same binary, flags, specification, limits and snapshots as a machine's, without a warden, a keeper or a check."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from everforge.engine.base import Limits
from everforge.engine.warden import bundle, cgroups, folders
from everforge.engine.warden.commands import Runsc
from everforge.engine.warden.held import Stdio, new_stdio
from everforge.engine.warden.sandboxes import DIRECT_BYTES
from everforge.engine.warden.traces import Traces
from everforge.wire.ids import new_sandbox_id

from .hand import Hand


@dataclass(slots=True)
class RawSandbox:
    id: str
    runsc: Runsc
    stdio: Stdio
    theirs: tuple[int, int, int]

    @property
    def hand(self) -> Hand:
        return Hand(self.stdio.to_guest, self.stdio.from_guest)


class Raw:
    def __init__(self, data: Path, runsc: Path, image: Path, limits: Limits, *, direct: bool) -> None:
        self._folders = folders.find(data)
        folders.make(self._folders)
        self._cgroups = cgroups.detect(self._folders.mark, root=True)
        self._traces = Traces(self._folders, self._cgroups)
        self._binary = runsc
        self._image = image
        self._limits = limits
        self._direct = direct  # runsc can write past the page cache
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)

    def prepare(self) -> RawSandbox:
        """Everything that comes before the command, and is not timed."""
        id, limits = new_sandbox_id(), self._limits
        bundle.write(
            self._folders.bundles / id,
            image=str(self._image),
            resources=bundle.resources(limits.memory_mb, limits.cpus, limits.processes),
            cgroup=self._cgroups.path(id) if self._cgroups else None,
        )
        stdio, theirs = new_stdio()
        return RawSandbox(id, Runsc(self._binary, self._folders, id, disk_mb=limits.disk_mb, cgroups=self._cgroups is not None), stdio, theirs)

    def restore(self, sandbox: RawSandbox, snapshot: Path) -> Hand:
        """To the moment when the user's processes run again."""
        self.start(sandbox, snapshot)
        hand = sandbox.hand
        hand.attach()
        hand.go()
        return hand

    def start(self, sandbox: RawSandbox, snapshot: Path) -> None:
        """Restored, and waiting for somebody to attach."""
        self._command(sandbox, sandbox.runsc.restore(snapshot), sandbox.theirs)

    def checkpoint(self, sandbox: RawSandbox, folder: Path) -> None:
        """The command that a warden would give."""
        direct = self._direct and self._usage_bytes(sandbox) >= DIRECT_BYTES
        self._command(sandbox, sandbox.runsc.save(folder, direct=direct), (self._null, self._null, self._null))

    def _usage_bytes(self, sandbox: RawSandbox) -> int:
        return (self._cgroups.usage_bytes(sandbox.id) if self._cgroups else None) or 0

    async def remove(self, sandbox: RawSandbox) -> None:
        await self._traces.kill_all(sandbox.id)
        await self._traces.erase(sandbox.id)
        sandbox.stdio.close()
        for number in sandbox.theirs:
            os.close(number)

    async def close(self) -> None:
        await self._traces.sweep(set())
        self._traces.clear()
        os.close(self._null)

    @staticmethod
    def _command(sandbox: RawSandbox, argv: list[str], stdio: tuple[int, int, int]) -> None:
        actions = [(os.POSIX_SPAWN_DUP2, number, target) for target, number in enumerate(stdio)]
        pid = os.posix_spawn(argv[0], argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            raise RuntimeError(f"{argv[0]} failed: {sandbox.runsc.complaint(0)}")


def sync(folder: Path) -> None:
    """Files first, then their names."""
    for path in [*folder.iterdir(), folder]:
        number = os.open(path, os.O_RDONLY)
        os.fsync(number)
        os.close(number)
