"""Power cuts without a switch: what lies on the disk at one moment, less what a disk may lose that was not told to sync.

Everything that was synced stays. Of the rest any part may be gone: names that their folder was not synced for, contents that were not, the end of the
database's log, cut anywhere or overwritten with zeros. What was removed may be back.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

DATABASE = "everforge.db"
T = TypeVar("T")


class Synced:
    """What is surely on the disk, by the calls that the kernel got: not by what those who should make them believe."""

    def __init__(self) -> None:
        self._contents: dict[int, int] = {}  # inode -> how much of it was synced
        self._names: dict[int, frozenset[str]] = {}  # of a folder, when it was synced

    @contextmanager
    def watching(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "fdatasync"):
                patch.setattr(os, name, self._watched(getattr(os, name)))
            yield

    def _watched(self, real: Callable[[int], None]) -> Callable[[Any], None]:
        def sync(file: Any) -> None:
            number = file if isinstance(file, int) else file.fileno()
            status = os.fstat(number)  # before: what is written meanwhile may not be caught
            names = frozenset(os.listdir(number)) if stat.S_ISDIR(status.st_mode) else frozenset[str]()
            real(number)
            if stat.S_ISDIR(status.st_mode):
                self._names[status.st_ino] = names
            else:
                self._contents[status.st_ino] = max(self._contents.get(status.st_ino, 0), status.st_size)

        return sync

    def bytes_of(self, path: Path) -> int:
        return self._contents.get(path.stat().st_ino, 0) if path.exists() else 0

    def names_in(self, folder: Path) -> frozenset[str]:
        return self._names.get(folder.stat().st_ino, frozenset())


class Everything(random.Random):
    """Draws the worst: all that may be gone is."""

    def random(self) -> float:
        return 1.0

    def choice(self, seq: Sequence[T]) -> T:  # pyright: ignore[reportIncompatibleMethodOverride]
        return seq[0]

    def randint(self, a: int, b: int) -> int:
        return a


@dataclass(frozen=True)
class PowerCut:
    """The disk at one moment, copied; `lose` takes away what may be gone."""

    folder: Path
    _sure_names: frozenset[str]
    _sure_bytes: Mapping[str, int]
    _log_bytes: int

    @classmethod
    def now(cls, snapshots: Path, database: Path, synced: Synced, to: Path) -> PowerCut:
        to.mkdir()
        files = [path for path in snapshots.glob("*/*") if path.is_file()]
        log = database.with_name(f"{database.name}-wal")
        cut = cls(to, synced.names_in(snapshots), {str(f.relative_to(snapshots)): synced.bytes_of(f) for f in files}, synced.bytes_of(log))
        shutil.copytree(snapshots, cut.snapshots)
        for path in (database, log):
            if path.exists():
                shutil.copy(path, to / path.name.replace(database.name, DATABASE))
        return cut

    @property
    def snapshots(self) -> Path:
        return self.folder / "snapshots"

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    def copy_to(self, folder: Path) -> PowerCut:
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)

    def lose(self, draw: random.Random) -> list[str]:
        """What was taken away, in words."""
        return [*self._lose_log(draw), *self._lose_names(draw), *self._lose_contents(draw)]

    def _lose_log(self, draw: random.Random) -> Iterator[str]:
        log = self.database.with_name(f"{DATABASE}-wal")
        size = log.stat().st_size if log.exists() else 0
        if size <= self._log_bytes:
            return
        how, at = draw.choice(["cut", "torn", "zeros", "kept"]), draw.randint(self._log_bytes, size)
        if how != "kept":
            os.truncate(log, self._log_bytes if how == "cut" else at)
        if how == "zeros":
            os.truncate(log, size)
        yield f"the log, {how} at {at} of {size} bytes, {self._log_bytes} of them synced"

    def _lose_names(self, draw: random.Random) -> Iterator[str]:
        for folder in sorted(self.snapshots.iterdir()):
            if folder.name in self._sure_names or draw.random() < 0.5:
                continue
            if draw.random() < 0.5:
                folder.rename(self.snapshots / f".partial-{draw.randbytes(8).hex()}")  # the rename is lost
            else:
                shutil.rmtree(folder)
            yield f"the name of {folder.name}"

    def _lose_contents(self, draw: random.Random) -> Iterator[str]:
        for name, sure_bytes in self._sure_bytes.items():
            file = self.snapshots / name
            size = file.stat().st_size if file.exists() else 0
            if size <= sure_bytes or draw.random() < 0.3:
                continue
            if draw.random() < 0.3:
                file.unlink()
            else:
                os.truncate(file, at := draw.randint(sure_bytes, size - 1))
                os.truncate(file, draw.choice([at, size]))  # cut off, or zeros to its end
            yield name
