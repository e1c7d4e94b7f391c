"""What `everforge doctor` looks at: each check tries the thing itself and gives one row."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from everforge.engine.gvisor.supply import find, namespace_problem, namespace_remedy, probe_runsc
from everforge.folders import cache_folder, data_folder, images_folder
from everforge.images.catalogue import Catalogue
from everforge.progress import Progress
from everforge.wire.errors import EverforgeError, ImageNotFound

from .cgroups import CONTROLLERS, try_cgroups
from .offers import IN_MEMORY, SLOW_SYNC_SECONDS, file_system, package_indexes, seccomp_problem, sync_seconds, writes_directly
from .virtual import NotForUs, kvm_problem

Status = Literal["ok", "warn", "fail"]

PYTHON_AT_LEAST = (3, 11)
KERNEL_AT_LEAST = (5, 4)  # older ones lack pidfd_open and what gVisor's systrap platform is quick with
MEMORY_MB_FAIL, MEMORY_MB_WARN = 256, 1024  # one awake machine with numpy and pandas takes about 115
DISK_MB_FAIL, DISK_MB_WARN = 500, 5000  # the images take 1 GB, each sleeping machine some 80 MB and more
MACHINE_DISK_MB = (5120 << 20) // 1_000_000  # what a machine's own disk may take, as the settings come

UNHELD_PROCESSORS = " Nothing holds them to their processors then (`cpus`), and one that computes without a pause does not give way to others."


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    status: Status
    sentence: str
    fix: str = ""


def all_checks(progress: Progress) -> Iterator[Row]:
    for check in (_python, _kernel, _namespaces, _seccomp, _kvm, _runsc, _cgroups, _memory):
        progress.step(f"checking {check.__name__.strip('_')}")
        yield check()
    yield _disk("data folder", data_folder(), "EVERFORGE_DATA")
    yield _safety(_there(data_folder()))
    if images_folder().parent != data_folder():
        yield _disk("folder of images", images_folder(), "EVERFORGE_IMAGES")
    yield _disk("cache folder", cache_folder(), "EVERFORGE_CACHE")
    catalogue = Catalogue.here()
    yield _image(catalogue, "default", "fail")
    yield _image(catalogue, "minimal", "warn")
    yield _egress()


def _python() -> Row:
    version = platform.python_version()
    if sys.version_info < PYTHON_AT_LEAST:
        return Row("python", "fail", f"Python {version} is too old.", "Install Python 3.11 or newer.")
    return Row("python", "ok", f"Python {version}.")


def _kernel() -> Row:
    release = platform.release()
    if platform.system() != "Linux":
        return Row("kernel", "fail", f"This is {platform.system()}; the gvisor engine needs Linux.", "Run Everforge on Linux.")
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers < KERNEL_AT_LEAST:
        return Row("kernel", "warn", f"Linux {release} is older than what Everforge is tried on.", "Use Linux 5.4 or newer.")
    return Row("kernel", "ok", f"Linux {release} on {platform.machine()}.")


def _namespaces() -> Row:
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    if problem := namespace_problem():
        return Row("namespaces", "fail", f"Running as {who}: {problem}.", _sentence(namespace_remedy()))
    kind = "sandboxes get a mount namespace" if os.geteuid() == 0 else "sandboxes run in a user namespace"
    return Row("namespaces", "ok", f"Running as {who}: {kind}.")


def _seccomp() -> Row:
    if problem := seccomp_problem():
        return Row("seccomp", "fail", f"This kernel cannot filter system calls ({problem}).", "Use a kernel with seccomp, as every distribution has.")
    return Row("seccomp", "ok", "The kernel filters system calls: the wall behind the wall of a sandbox.")


def _kvm() -> Row:
    """Told, since people ask; the engine that there is does without."""
    try:
        problem = kvm_problem()
    except NotForUs as found:
        sentence = f"{found} is there, but not for this user, so that it was not tried; machines need none."
        return Row("virtualisation", "ok", sentence, f"Whoever wants it for something else: the group of {found}, `sudo usermod -aG kvm $USER`.")
    if problem:
        return Row("virtualisation", "ok", f"None by hardware ({problem}); machines need none.")
    return Row("virtualisation", "ok", "By hardware, and a tiny computer ran in it; machines do not use it yet.")


def _runsc() -> Row:
    try:
        found = find(cache_folder())
    except EverforgeError as error:
        return Row("runsc", "fail", error.message + ".", "Correct or unset EVERFORGE_RUNSC.")
    if found is None:
        return Row("runsc", "fail", "runsc has not been built yet.", "Run `everforge setup`.")
    outcome = probe_runsc(found.path)
    if not outcome.fit:
        return Row("runsc", "fail", f"{found.path}: {outcome.message}.", _sentence(outcome.remedy))
    return Row("runsc", "ok", f"{found.path}: {outcome.message}.")


def _cgroups() -> Row:
    trial = try_cgroups()
    if not trial.problems and not trial.untried:
        sentence = f"Version {trial.version}: a group was made, limited in memory, processes and processor time, and removed."
        return Row("cgroups", "ok", f"{sentence} So the kernel itself holds machines to these limits; open files, disk and output are held inside.")
    if not trial.problems:
        sentence = (
            f"Version {trial.version}: this user may make groups and divide {', '.join(CONTROLLERS)} among them; the limits show when a server runs."
        )
        return Row("cgroups", "ok", sentence)
    version = f"Version {trial.version}" if trial.version else "There are none"
    unheld = UNHELD_PROCESSORS if "cpu" in trial.problems else ""
    lacking = ", ".join(f"{name} ({why})" for name, why in trial.problems.items())
    if os.geteuid() == 0:
        sentence = f"{version}; these cannot be used: {lacking}; machines are limited by watching them.{unheld}"
        return Row("cgroups", "warn", sentence, "Mount the cgroup file system writable, with these controllers enabled.")
    sentence = f"{version}; this user cannot use: {lacking}; machines are limited by process limits and by watching their memory.{unheld}"
    return Row("cgroups", "warn", sentence, "Have systemd delegate cgroups to this user (`Delegate=yes`), or run as root.")


def _memory() -> Row:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
    total, available = (int(fields[name].split()[0]) // 1024 for name in ("MemTotal", "MemAvailable"))
    sentence = f"{available} MB of {total} MB are free."
    if available < MEMORY_MB_FAIL:
        return Row("memory", "fail", sentence, "Free some memory: a machine takes about 115 MB.")
    if available < MEMORY_MB_WARN:
        return Row("memory", "warn", sentence, "Few machines can be awake at once; free some memory for more.")
    return Row("memory", "ok", sentence)


def _there(folder: Path) -> Path:
    """It, or what is above it as far as that exists."""
    while not os.path.exists(folder):  # noqa: PTH110 - Path.exists raises where we may not even look
        folder = folder.parent
    return folder


def _safety(folder: Path) -> Row:
    """Sleeping machines are files: how safe and how quick are they there?"""
    kind = file_system(folder.resolve())
    if kind in IN_MEMORY:
        return Row("file system", "warn", f"{kind}: it lies in memory, and machines are gone with it.", "Set EVERFORGE_DATA to a folder on a disk.")
    try:
        seconds = sync_seconds(folder)
    except OSError as e:
        return Row("file system", "warn", f"{kind}: nothing can be tried ({(e.strerror or str(e)).lower()}).", "See the data folder above.")
    direct = "are possible" if writes_directly(folder) else "are not, so that large machines take longer to fall asleep"
    sentence = f"{kind}: what is written is safe after {seconds * 1000:.0f} ms; direct writes {direct}."
    if seconds > SLOW_SYNC_SECONDS:
        return Row("file system", "warn", sentence, "Going to sleep takes a while there; a quicker disk helps.")
    return Row("file system", "ok", sentence)


def _egress() -> Row:
    """Nobody is asked: whether the index answers shows when it is needed."""
    hosts = package_indexes()
    if not hosts:
        return Row("packages", "ok", "pip has no index configured here: machines may reach pip's own, and nothing else unless allowed.")
    return Row("packages", "ok", f"pip is configured for {', '.join(hosts)}: machines may reach that, and nothing else unless allowed.")


def _disk(name: str, folder: Path, variable: str) -> Row:
    there = _there(folder)
    if problem := _write_problem(there):
        return Row(
            name, "fail", f"{folder} cannot be written: {problem}.", f"Give yourself the right to write there, or set {variable} to another folder."
        )
    free_mb = shutil.disk_usage(there).free // 1_000_000
    sentence = f"{folder}: {free_mb} MB free."
    if free_mb < DISK_MB_FAIL:
        return Row(name, "fail", sentence, f"Free some disk space, or set {variable} to a folder on another disk.")
    if folder == data_folder() and free_mb < MACHINE_DISK_MB:
        fix = f"Give new machines a smaller disk (`disk_mb`), free some, or set {variable} to a folder on another disk."
        return Row(name, "warn", f"{sentence} One machine may write 5,120 MB unless `disk_mb` says otherwise, and so fill this disk for all.", fix)
    if free_mb < DISK_MB_WARN:
        return Row(name, "warn", sentence, f"Sleeping machines need room; free some, or set {variable} to a folder on another disk.")
    return Row(name, "ok", sentence)


def _write_problem(folder: Path) -> str:
    """Why nothing can be made in it, or nothing. Tried: being root says little about /proc, a read-only disk or somebody else's network folder."""
    if not folder.is_dir():
        return f"{folder} is not a folder"
    try:
        Path(tempfile.mkdtemp(prefix=".everforge-doctor-", dir=folder)).rmdir()
    except OSError as e:
        return f"nothing can be made in {folder} ({(e.strerror or str(e)).lower()})"
    return ""


def _image(catalogue: Catalogue, recipe: str, when_missing: Status) -> Row:
    name = f"image {recipe}"
    try:
        image = catalogue.find(recipe)
    except ImageNotFound:
        return Row(name, when_missing, "It has not been built.", f"Run `everforge image build {recipe}`.")
    except EverforgeError as error:
        return Row(name, "fail", error.message.split(";")[0] + ".", f"Run `everforge image delete {recipe}`, then `everforge image build {recipe}`.")
    if not image.as_locked:
        return Row(
            name, "warn", f"{image.digest[:12]} differs from its lock.", f"Run `everforge image lock {recipe}` to take note of the newer packages."
        )
    return Row(name, "ok", f"{image.digest[:12]}, {image.size_bytes // 1_000_000} MB.")


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."
