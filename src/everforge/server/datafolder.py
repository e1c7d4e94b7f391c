"""The data folder of one server: what lies where, and the lock that keeps a second server out."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, field
from pathlib import Path

from everforge.store.manifests import NAME as MANIFEST
from everforge.wire.errors import DataFolderBusy, InvalidInput, StoreDamaged

UNUSABLE = ",:\\"  # runsc divides options at the first two, and mounts escape the third


@dataclass(slots=True)
class DataFolder:
    path: Path
    _lock: int | None = field(default=None, init=False)

    @property
    def database(self) -> Path:
        return self.path / "everforge.db"

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def caretaker(self) -> Path:
        """Names the caretaker that waits for the next server; gone when one has come."""
        return self.path / "caretaker"

    @property
    def caretaker_log(self) -> Path:
        return self.path / "caretaker.log"

    def expect_caretaker(self, token: str) -> None:
        """From now on this caretaker is wanted. A link, which needs no room: the disk may be full, and just then a caretaker is needed."""
        self.caretaker.unlink(missing_ok=True)
        self.caretaker.symlink_to(token)

    def awaits(self, token: str) -> bool:
        try:
            return str(self.caretaker.readlink()) == token
        except OSError:
            return False

    @property
    def has_caretaker(self) -> bool:
        return self.caretaker.is_symlink()

    def lock(self, caretaker_token: str = "") -> None:
        """Held until `unlock` or the end of the process, however that comes. Raises DataFolderBusy, InvalidInput.

        It may be the caretaker who takes it, and says its token; anyone else makes it superfluous.
        """
        if "\0" in str(self.path):
            raise InvalidInput("a data folder's path has no NUL in it; give another one")
        if bad := sorted(set(UNUSABLE) & set(str(self.path))):
            raise InvalidInput(f"{self.path} cannot be a data folder: runsc cannot take {' '.join(bad)} in a path; give another one")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.snapshots.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise self._unusable(e) from e
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise DataFolderBusy(f"another server is using {self.path}; stop it first, or give this one another data folder") from None
        self._lock = lock
        try:
            if not self.awaits(caretaker_token):
                self.caretaker.unlink(missing_ok=True)
        except OSError as e:
            self.unlock()
            raise InvalidInput(f"{self.caretaker} is not a file of ours: {e.strerror}; remove it") from e

    def _unusable(self, error: OSError) -> InvalidInput:
        place = Path(error.filename or self.path)
        why = "not a folder" if isinstance(error, FileExistsError) else (error.strerror or str(error)).lower()
        if isinstance(error, FileExistsError | IsADirectoryError) and place != self.path:
            return InvalidInput(f"{place} is in the way of a server ({why}): move it away, or give another data folder")
        return InvalidInput(f"{self.path} cannot be a data folder ({place}: {why}); give another one")

    def check_whole(self) -> None:
        """A database that is gone or empty beside snapshots of machines is not a new server: a start would sweep them away. Raises StoreDamaged."""
        for name in ("", "-wal", "-shm"):
            place = self.database.with_name(self.database.name + name)
            if place.exists() and not place.is_file():
                raise StoreDamaged(f"{place} is not a file, as a database is: move it away. Nothing was changed")
        try:
            if self.database.stat().st_size:
                return
        except OSError:
            pass
        saved = [p for p in self.snapshots.glob(f"*/{MANIFEST}") if not p.is_file() or b'"machine": null' not in p.read_bytes()]
        if saved:
            raise StoreDamaged(
                f"{self.database} is missing or empty, but {len(saved)} snapshots of machines are in {self.snapshots}: restore it from a backup,"
                " or move them away to begin anew. Nothing was changed"
            )

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
