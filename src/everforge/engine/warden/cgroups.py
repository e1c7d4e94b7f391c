"""How limits are enforced on this host: control groups of version 1 or 2, a delegated part of version 2, or none.

As root runsc makes the groups from the specification (`Managed`). A user to whom systemd delegated a part of version 2 gets groups that the warden
makes itself (`Delegated`). Without either, the warden watches memory (watch.py) and the agent's rlimits do the rest.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import bundle

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids", "cpu")
LEAF = "warden"  # in a delegated part: where the warden and its server are
REMOVE_SECONDS = 5.0  # a group is busy for a moment after its last process was reaped
WEIGHT_PARTS = 16  # a sandbox that gives way weighs so many times less than others, and than any program of the computer


@dataclass(frozen=True, slots=True)
class Sizes:
    memory_mb: int
    cpus: float
    processes: int


class Cgroups:
    """The groups of one data folder, `PREFIX<sandbox id>` in every hierarchy. With root they lie side by side at the top: below a group of their own
    they would all wait for its turn among the computer's programs, which the one that computes most has used up for all of them."""

    def __init__(self, version: int, mount: Path, prefix: str, *, managed: bool) -> None:
        self.version = version
        self.managed = managed  # runsc makes and fills them
        self._mount = mount
        self._prefix = prefix

    def path(self, id: str) -> str:
        """As an OCI specification names it."""
        return f"{self._prefix}{id}"

    def folder(self, id: str, controller: str) -> Path:
        base = self._mount if self.version == 2 else self._mount / controller
        return base / self.path(id).lstrip("/")

    def files(self, sizes: Sizes) -> list[tuple[str, str, str, bool]]:
        """(controller, file, value, must it be there) of a group with these limits, in the order of writing."""
        memory = str(bundle.memory_bytes(sizes.memory_mb))
        quota = bundle.cpu_quota_us(sizes.cpus)
        tasks = str(bundle.tasks(sizes.processes))
        if self.version == 2:
            return [
                ("memory", "memory.max", memory, True),
                ("memory", "memory.swap.max", "0", False),
                ("pids", "pids.max", tasks, True),
                ("cpu", "cpu.max", f"{quota} {bundle.CPU_PERIOD_US}", True),
            ]
        return [
            ("memory", "memory.limit_in_bytes", memory, True),
            # Memory and swap together: no swap for machines, or an idle neighbour pays for a greedy one. Absent where the kernel does not count swap.
            ("memory", "memory.memsw.limit_in_bytes", memory, False),
            ("pids", "pids.max", tasks, True),
            ("cpu", "cpu.cfs_period_us", str(bundle.CPU_PERIOD_US), True),
            ("cpu", "cpu.cfs_quota_us", str(quota), True),
        ]

    def limit(self, id: str, sizes: Sizes) -> None:
        """Set the limits of a living sandbox. Raises OSError: also when it uses more memory than it may from now on."""
        failed: list[tuple[Path, str, bool]] = []
        for controller, name, value, needed in self.files(sizes):
            file = self.folder(id, controller) / name
            if not _write(file, value):
                failed.append((file, value, needed))
        # With version 1 the two memory limits bound each other, and which goes first depends on the direction: so a second round.
        for file, value, needed in failed:
            if not _write(file, value) and needed:
                raise OSError(errno.EBUSY, f"the limit {value} could not be set", str(file))

    def make(self, id: str, sizes: Sizes) -> Path:
        """A group that the warden makes itself. Returns the file that a process moves itself into it by."""
        folder = self.folder(id, "memory")
        folder.mkdir()
        self.limit(id, sizes)
        return folder / "cgroup.procs"

    def usage_bytes(self, id: str) -> int | None:
        """Working set: without the file pages that the kernel would drop first."""
        folder = self.folder(id, "memory")
        usage, idle = ("memory.current", "inactive_file") if self.version == 2 else ("memory.usage_in_bytes", "total_inactive_file")
        used = _number(folder / usage)
        return None if used is None else max(0, used - (_keyed(folder / "memory.stat", idle) or 0))

    def memory_kills(self, id: str) -> int:
        """How many processes the kernel has ended for want of memory; asked before the group is removed."""
        folder = self.folder(id, "memory")
        return _keyed(folder / ("memory.events" if self.version == 2 else "memory.oom_control"), "oom_kill") or 0

    def cpu_seconds(self, id: str) -> float | None:
        """Of processors, since it began."""
        if self.version == 2:
            used_us = _keyed(self.folder(id, "cpu") / "cpu.stat", "usage_usec")
            return None if used_us is None else used_us / 1e6
        used_ns = _number(self.folder(id, "cpuacct") / "cpuacct.usage")
        return None if used_ns is None else used_ns / 1e9

    def weigh(self, id: str, *, gives_way: bool) -> None:
        """How much it counts for where processors are wanted by several. It has what nobody else wants either way."""
        file, usual = ("cpu.weight", 100) if self.version == 2 else ("cpu.shares", 1024)
        _write(self.folder(id, "cpu") / file, str(usual // WEIGHT_PARTS if gives_way else usual))

    def _hierarchies(self) -> list[Path]:
        if self.version == 2:
            return [self._mount]
        return [self._mount / name for name in _names(self._mount)]

    def _folders(self, path: str) -> list[Path]:
        found = [base / path.lstrip("/") for base in self._hierarchies()]
        return [folder for folder in found if folder.is_dir()]

    async def remove(self, id: str) -> bool:
        """Whatever is left of a sandbox's groups, in every hierarchy; its processes are gone. False when one stays busy."""
        loop = asyncio.get_running_loop()
        until = loop.time() + REMOVE_SECONDS
        while not _remove(self._folders(self.path(id))):
            if loop.time() > until:
                return False
            await asyncio.sleep(0.01)
        return True

    def strays(self) -> set[str]:
        """What all groups of this data folder are named after."""
        above, _, start = self._prefix.rpartition("/")
        return {
            name.removeprefix(start)
            for folder in self._folders(above)
            for name in _names(folder)
            if name.startswith(start) and (folder / name).is_dir()
        }

    def remove_home(self) -> None:
        """Where they lie, if that is a group of our own. Called when nothing is held."""
        if not self.managed:
            _remove(self._folders(self._prefix))


def _takes_groups(hierarchy: Path, mark: str) -> bool:
    """Tried: in a container it may be there to look at only."""
    trial = hierarchy / f"everforge-{mark}-trial"
    try:
        trial.mkdir(exist_ok=True)
    except OSError:
        return False
    return _remove([trial])


def detect(mark: str, *, root: bool, mount: Path = MOUNT, own: Path = Path("/proc/self/cgroup")) -> Cgroups | None:
    if root:
        if (mount / "cgroup.controllers").exists():
            # In a container the mount may be a group with processes in it, which cannot hand on anything: then we watch instead.
            return Cgroups(2, mount, f"/everforge-{mark}-", managed=True) if _has(mount) and _hand_on(mount) else None
        if all(_takes_groups(mount / controller, mark) for controller in CONTROLLERS):
            return Cgroups(1, mount, f"/everforge-{mark}-", managed=True)
        return None
    return _delegated(mark, mount, own)


def _delegated(mark: str, mount: Path, own: Path) -> Cgroups | None:
    """A part of version 2 that this user may divide. Its processes step into a leaf first: a group that has any cannot hand on controllers."""
    try:
        lines = own.read_text().splitlines()
        path = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
        group = mount / path.lstrip("/")
        if group.name == LEAF and group.parent.name.startswith("everforge-"):
            group = group.parent.parent  # where an earlier warden has put us
        if not _has(group):
            return None
        home = group / f"everforge-{mark}"
        (home / LEAF).mkdir(parents=True, exist_ok=True)
        _move([os.getpid()], home / LEAF)
        _move(_members(group), home / LEAF)
    except (OSError, StopIteration):
        return None
    if not _hand_on(group) or not _hand_on(home):
        return None
    return Cgroups(2, mount, f"/{home.relative_to(mount)}/", managed=False)


def _has(group: Path) -> bool:
    return set(CONTROLLERS) <= set((group / "cgroup.controllers").read_text().split())


def _hand_on(group: Path) -> bool:
    """Let groups below this one use the controllers. Busy when it has processes of its own, unless it is the root of all."""
    return _write(group / "cgroup.subtree_control", " ".join(f"+{c}" for c in CONTROLLERS))


def _members(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []


def _move(pids: list[int], group: Path) -> None:
    """The server that started us is among them: a part that was delegated belongs to those in it, to divide as they like."""
    for pid in pids:
        try:
            (group / "cgroup.procs").write_text(str(pid))
        except ProcessLookupError:
            continue  # it has just ended


def _write(file: Path, value: str) -> bool:
    try:
        file.write_text(value)
    except OSError:
        return False
    return True


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _keyed(file: Path, key: str) -> int | None:
    try:
        return next((int(line.split()[1]) for line in file.read_text().splitlines() if line.split()[:1] == [key]), None)
    except (OSError, ValueError, IndexError):
        return None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def _remove(folders: Iterable[Path]) -> bool:
    done = True
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            done = False
    return done
