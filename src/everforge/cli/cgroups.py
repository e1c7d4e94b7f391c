"""Tries control groups as a server will use them: make one, limit it, read the limit back, remove it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
CONTROLLERS = ("memory", "pids", "cpu")
LIMITS = {  # small: a group cannot be given more than the one it is in has
    1: {"memory": ("memory.limit_in_bytes", "67108864"), "pids": ("pids.max", "16"), "cpu": ("cpu.cfs_quota_us", "10000")},
    2: {"memory": ("memory.max", "67108864"), "pids": ("pids.max", "16"), "cpu": ("cpu.max", "10000 100000")},
}


class Kernel:
    """Makes and removes groups. A test has one that also fills them."""

    def make(self, group: Path) -> None:
        group.mkdir()

    def remove(self, group: Path) -> None:
        group.rmdir()


@dataclass(frozen=True, slots=True)
class Trial:
    version: int  # 0: there are none
    problems: Mapping[str, str] = field(default_factory=dict[str, str])  # controller -> why it cannot be used
    untried: bool = False  # they may be divided, but only by one who first moves this user's processes aside, as a server does


def try_cgroups(mount: Path = MOUNT, own: Path = OWN, kernel: Kernel | None = None) -> Trial:
    kernel = kernel or Kernel()
    if (mount / "cgroup.controllers").exists():
        return _try_unified(_own_part(mount, own), kernel)
    if not any((mount / name).is_dir() for name in CONTROLLERS):
        return Trial(0, dict.fromkeys(CONTROLLERS, "not there"))
    tried = {name: _try(mount / name, 1, [name], kernel).get(name, "") for name in CONTROLLERS}
    return Trial(1, {name: why for name, why in tried.items() if why})


def _own_part(mount: Path, own: Path) -> Path:
    """Root divides the whole; a user the part that was delegated to it."""
    if os.geteuid() == 0:
        return mount
    lines = own.read_text(encoding="utf-8", errors="replace").splitlines()
    return mount / next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/").lstrip("/")


def _try_unified(part: Path, kernel: Kernel) -> Trial:
    try:
        listed = (part / "cgroup.controllers").read_text().split()
        given = (part / "cgroup.subtree_control").read_text().split()
    except OSError as error:
        return Trial(2, dict.fromkeys(CONTROLLERS, _why(error)))
    problems = {name: f"not enabled in {part}" for name in CONTROLLERS if name not in listed}
    for name in (name for name in CONTROLLERS if name in listed and name not in given):
        # Not taken back afterwards: a server does the same, and may have begun to count on it meanwhile.
        if error := _write(part / "cgroup.subtree_control", f"+{name}"):
            if error.errno == errno.EBUSY and os.geteuid() != 0 and not problems:
                return Trial(2, _try(part, 2, [], kernel), untried=True)
            problems[name] = _why(error)
    return Trial(2, problems | _try(part, 2, [name for name in CONTROLLERS if name not in problems], kernel))


def _try(parent: Path, version: int, names: list[str], kernel: Kernel) -> dict[str, str]:
    """Of these controllers, those that did not limit a new group, and why; all of them when none could be made."""
    group = parent / f"everforge-doctor-{os.getpid()}"
    try:
        kernel.make(group)
    except OSError as error:
        return dict.fromkeys(names or CONTROLLERS, _why(error))
    try:
        tried = {name: _limit(group, *LIMITS[version][name]) for name in names}
    finally:
        with contextlib.suppress(OSError):
            kernel.remove(group)
    return {name: why for name, why in tried.items() if why}


def _limit(group: Path, file: str, value: str) -> str:
    if error := _write(group / file, value):
        return _why(error)
    try:
        kept = (group / file).read_text().strip()
    except OSError as error:
        return _why(error)
    return "" if kept == value else f"{file} stayed {kept}"


def _write(file: Path, value: str) -> OSError | None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)  # never makes it: a group without the file has no such limit
        try:
            os.write(descriptor, value.encode("ascii"))
        finally:
            os.close(descriptor)
    except OSError as error:
        return error
    return None


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
