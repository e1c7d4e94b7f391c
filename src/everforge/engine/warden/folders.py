"""Where a warden keeps its things, found from the data folder alone, so that a server and its warden always agree."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from everforge.wire.errors import EngineUnfit
from everforge.wire.ids import new_sandbox_id

SOCKET_PATH_BYTES_MAX = 107  # sun_path, less its closing zero
LONGEST_SOCKET = f"run/state/runsc-{new_sandbox_id()}.sock"  # runsc puts a socket of a sandbox elsewhere on the host when its path is too long


@dataclass(frozen=True, slots=True)
class Folders:
    data: Path
    run: Path  # 0700; all that is worthless without a living warden

    @property
    def socket(self) -> Path:
        return self.run / "warden.socket"

    @property
    def lock(self) -> Path:
        return self.run / "warden.lock"

    @property
    def log(self) -> Path:
        return self.run / "warden.log"

    @property
    def state(self) -> Path:
        """runsc's own --root."""
        return self.run / "state"

    @property
    def bundles(self) -> Path:
        return self.run / "bundles"

    @property
    def logs(self) -> Path:
        return self.run / "logs"

    @property
    def disks(self) -> Path:
        """What machines write. Beside the snapshots, since it may be large and must not lie in memory."""
        return self.data / "disks"

    @property
    def engines(self) -> Path:
        """runsc binaries, each in a folder named by its digest."""
        return self.data / "engine"

    @property
    def last_failure(self) -> Path:
        """What runsc logged when a command failed last."""
        return self.engines / "last-failure.log"

    @property
    def mark(self) -> str:
        """Short name of this data folder, for what lies outside of it: cgroups, a run folder."""
        return _mark(self.data)


def _mark(data: Path) -> str:
    return hashlib.sha256(os.fsencode(data)).hexdigest()[:16]


def find(data: Path) -> Folders:
    """The run folder is inside the data folder; under /tmp when that has too long a name for sockets."""
    data = data.resolve()
    if len(os.fsencode(data / LONGEST_SOCKET)) <= SOCKET_PATH_BYTES_MAX:
        return Folders(data, data / "run")
    return Folders(data, Path("/tmp") / f"everforge-{os.geteuid()}" / _mark(data))


def make(folders: Folders) -> None:
    """Make the run folder, or refuse one that another user could have laid there. Raises EngineUnfit."""
    try:
        _make(folders)
    except FileExistsError as e:
        raise EngineUnfit(f"{e.filename} is not a folder, and one is needed there: move it away, or give another data folder") from e
    except OSError as e:
        raise EngineUnfit(
            f"the folder {e.filename} cannot be made ({(e.strerror or str(e)).lower()}): give another data folder, or mend this one"
        ) from e


def _make(folders: Folders) -> None:
    folders.data.mkdir(parents=True, exist_ok=True)
    for folder in [folders.run] if folders.run.parent == folders.data else [folders.run.parent, folders.run]:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise EngineUnfit(f"{folder} is not a folder of this user: remove it")
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    for folder in (folders.state, folders.bundles, folders.logs, folders.disks, folders.engines):
        folder.mkdir(mode=0o700, exist_ok=True)
