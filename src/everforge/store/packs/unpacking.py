"""Puts the large files of a packed snapshot together again, in another folder: the packed form is never touched by it."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from pathlib import Path

from everforge.store.disk import CHUNK_BYTES, FULL, Disk
from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SnapshotId

from .index import BASE, PACK, PAGE_BYTES, ZERO, Runs
from .pack import PAGES, read_index

PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, *FULL})  # says nothing about the file that could not be opened


class Unpacking:
    """Of one snapshot. Raises SnapshotDamaged where its packed form cannot be read, OSError where the files cannot be written now."""

    def __init__(self, pack: Path, snapshot: SnapshotId, disk: Disk) -> None:
        self._snapshot = snapshot
        self._disk = disk
        with ExitStack() as opened:
            try:
                self._index = read_index(pack, snapshot, disk)
                self._sources = {PACK: self._open(pack / PAGES, opened)}
                if self._index.base is not None:
                    self._sources[BASE] = self._open(pack / self._index.base, opened)
            except OSError as e:
                if e.errno in PASSING:
                    raise
                raise self._damaged(f"cannot be read: {e.strerror} ({Path(str(e.filename)).name})") from e
            self._opened = opened.pop_all()

    def __enter__(self) -> Unpacking:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._index.files)

    def write(self, into: Path) -> None:
        """The files are as long as they were; whether they are the same, their hashes tell."""
        for name, (size, runs) in self._index.files.items():
            target = self._disk.open_file(into / name, write=True)
            try:
                self._disk.truncate(target, size)
                self._copy(runs, target, size)
            finally:
                os.close(target)

    def _copy(self, runs: Runs, target: int, size: int) -> None:
        offset = 0
        for source, first, pages in runs:
            end = min(offset + pages * PAGE_BYTES, size)
            if source != ZERO:  # those are the holes of a file that was made longer
                shift = first * PAGE_BYTES - offset
                for at in range(offset, end, CHUNK_BYTES):
                    self._disk.write_at(target, self._read(source, min(CHUNK_BYTES, end - at), at + shift), at)
            offset = end

    def _read(self, source: int, count: int, offset: int) -> bytes:
        try:
            data = self._disk.read_at(self._sources[source], count, offset)
        except OSError as e:
            raise self._damaged(f"cannot be read: {e.strerror}") from e
        if len(data) < count:
            raise self._damaged("is truncated")
        return data

    def _open(self, path: Path, opened: ExitStack) -> int:
        descriptor = self._disk.open_file(path)
        opened.callback(os.close, descriptor)
        return descriptor

    def _damaged(self, what: str) -> SnapshotDamaged:
        return SnapshotDamaged(f"snapshot {self._snapshot}: its pack {what}", snapshot=self._snapshot, file="pack")
