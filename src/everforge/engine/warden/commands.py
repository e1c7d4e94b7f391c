"""The runsc commands that exist for us, as argument lists; and what went wrong, from runsc's log."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from .folders import Folders

# What snapshots depend on; part of the fingerprint of the engine. Everything that loosens the sandbox (host sockets, host fifos, raw sockets, set-uid
# programs, host devices, debug and strace logs) is off by default and stays so.
FLAGS = ("--platform=systrap", "--network=none", "--file-access=exclusive", "--directfs=true", "--watchdog-action=log")
# An empty network namespace for each gofer. By default they share one that is mounted below --root, where a killed warden would leave it; a new one
# takes no longer.
NO_MOUNT = "--gofer-network-namespace=new"
# The file of the overlay is unlinked as soon as it is open: nothing is left behind, however the sandbox ends.
OVERLAY = "--overlay2=root:dir={folder},size={size_mb}m"

TAIL_BYTES = 64 * 1024  # a message may have the trace of a Go program behind it, in the same line: 11 kB were seen
KEPT_BYTES = 64 * 1024
MESSAGE_LENGTH_MAX = 600
TRACE = re.compile(r"\s*(?:\n|\\n)\s*goroutine \d+ \[.*", re.DOTALL)  # and all that follows


class Runsc:
    """Commands on one sandbox."""

    def __init__(self, binary: Path, folders: Folders, id: str, *, disk_mb: int = 0, cgroups: bool = True) -> None:
        self._id = id
        self._bundle = folders.bundles / id
        self.log = folders.logs / f"{id}.log"
        self._base = [str(binary), f"--root={folders.state}", *FLAGS, NO_MOUNT, f"--log={self.log}"]
        if disk_mb:
            self._base.append(OVERLAY.format(folder=folders.disks, size_mb=disk_mb))
        if not cgroups:
            self._base.append("--ignore-cgroups")

    def start(self) -> list[str]:
        return [*self._base, "run", "--detach", "--bundle", str(self._bundle), self._id]

    def create(self) -> list[str]:
        return [*self._base, "create", "--bundle", str(self._bundle), self._id]

    def restore(self, folder: Path) -> list[str]:
        return [*self._base, "restore", "--detach", "--bundle", str(self._bundle), f"--image-path={folder}", self._id]

    def save(self, folder: Path, *, direct: bool) -> list[str]:
        # --leave-running always: without it a failed checkpoint kills the sandbox.
        options = ["--leave-running", "--compression=none", *(["--direct"] if direct else [])]
        return [*self._base, "checkpoint", *options, f"--image-path={folder}", self._id]

    def log_size(self) -> int:
        try:
            return self.log.stat().st_size
        except OSError:
            return 0

    def keep_log(self, file: Path) -> None:
        """The log goes with its sandbox; of one that failed the end is kept."""
        try:
            with open(self.log, "rb") as log:
                log.seek(max(0, self.log_size() - KEPT_BYTES))
                file.write_bytes(log.read(KEPT_BYTES))
        except OSError:
            pass  # the disk may be what is full

    def complaint(self, since: int) -> str:
        """The last thing that was logged after this size of the log, as one line."""
        try:
            with open(self.log, "rb") as file:
                file.seek(max(since, self.log_size() - TAIL_BYTES))
                lines = file.read(TAIL_BYTES).decode(errors="replace").splitlines()
        except OSError:
            lines = []
        fatal = [line for line in lines if "FATAL" in line or "error" in line.lower()] or lines
        return _message(fatal[-1]) if fatal else "it said nothing"


def _message(line: str) -> str:
    """What a line of the log says: without what stands around it, and without a trace."""
    try:
        said = json.loads(line)["msg"]
    except (ValueError, TypeError, KeyError):
        said = line.split("] ", 1)[-1]
    sentence = " ".join(TRACE.sub("", str(said)).split()).removeprefix("FATAL ERROR: ")
    return sentence.rstrip(".:")[:MESSAGE_LENGTH_MAX]


FULL_BYTES = 32 * 1024 * 1024  # a save that failed with less than this left, and more than this to write, failed for want of it


def is_disk_full(complaint: str, folder: Path) -> bool:
    """As runsc says; or as the disk shows, on which it may not even have found room to say so."""
    if any(phrase in complaint.lower() for phrase in ("no space left on device", "disk quota exceeded")):
        return True
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < FULL_BYTES
