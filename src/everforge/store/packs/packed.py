"""The packed ones among the snapshots of a folder: their working copies, and what goes with them when they go. All of it blocks."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from everforge.store import manifests
from everforge.store.base import Manifest
from everforge.store.disk import FULL, Disk
from everforge.wire.errors import DiskFull, EverforgeError, WakeFailed
from everforge.wire.ids import SnapshotId

from . import pack
from .pack import Pack, folder_of, locked
from .unpacking import Unpacking

log = logging.getLogger(__name__)

WORKING = ".unpacked-"
"""What a packed snapshot is restored from: made when it is wanted, gone when it is not, and never believed after a restart, so that it need not be
synced."""


class PackedSnapshots:
    def __init__(self, root: Path, disk: Disk, partial: str) -> None:
        self._root = root
        self._disk = disk
        self._partial = partial

    def is_packed(self, manifest: Manifest, present: set[str]) -> bool:
        """A file that is there counts, whatever the pack says."""
        home = folder_of(self._root, manifest.machine)
        return bool(manifest.files.keys() - present) and home is not None and os.path.lexists(home / manifest.snapshot)

    def costs(self, packed: Iterable[tuple[Manifest, Path]]) -> dict[SnapshotId, int]:
        """What lies in the folder of each, and its part of the pack. What is gone meanwhile costs nothing."""
        costs: dict[SnapshotId, int] = {}
        parts: dict[Path, int] = {}
        for manifest, folder in packed:
            home = folder_of(self._root, manifest.machine)
            assert home is not None
            with contextlib.suppress(OSError):
                if home not in parts:
                    parts[home] = pack.bytes_used(home) // max(1, len(pack.indexes(home)))
                costs[manifest.snapshot] = parts[home] + sum(self._disk.sizes(folder).values())
        return costs

    def working_copy(self, manifest: Manifest) -> Path:
        """A folder with all files of the snapshot, made now if there is none. Raises SnapshotDamaged, DiskFull, WakeFailed."""
        copy = self._working(manifest.snapshot)
        if copy.is_dir():
            return copy
        home = folder_of(self._root, manifest.machine)
        assert home is not None
        partial = self._root / f"{self._partial}{secrets.token_hex(8)}"
        try:
            with Unpacking(home, manifest.snapshot, self._disk) as unpacking:
                self._disk.make_folder(partial)
                for name in {manifests.NAME, *manifest.files} - unpacking.names:
                    with contextlib.suppress(FileNotFoundError):  # the check of sizes names it
                        self._disk.link(self._root / manifest.snapshot / name, partial / name)
                unpacking.write(partial)
                self._disk.rename(partial, copy)
        except BaseException as e:
            with contextlib.suppress(OSError):
                self._disk.remove_tree(partial)
            if isinstance(e, OSError):
                raise _not_unpacked(manifest.snapshot, e) from e
            raise
        return copy

    def has_working_copy(self, id: SnapshotId) -> bool:
        return self._working(id).is_dir()

    def drop_working_copy(self, id: SnapshotId) -> None:
        copy = self._working(id)
        if not copy.is_dir():
            return
        try:
            gone = self._root / f"{self._partial}{secrets.token_hex(8)}"  # first the name: half a copy must never be found under it
            self._disk.rename(copy, gone)
            self._disk.remove_tree(gone)
        except OSError as e:
            log.warning("%s could not be removed, the next start tries again: %s", copy, e)

    def remove_empty(self, machines: Iterable[str]) -> None:
        """The packs of those that have nothing packed any more."""
        for machine in machines:
            home = folder_of(self._root, machine)
            if home is not None and home.is_dir() and not pack.indexes(home):
                try:
                    self._collect(home, 0.0)
                except OSError as e:
                    log.warning("the pack %s could not be removed, the next start tries again: %s", home, e)

    def forget(self, id: SnapshotId, machine: str | None) -> bool:
        """Its snapshot is gone. True when somebody must look which pages are still needed: others lie in the same pack, or are just being packed."""
        self.drop_working_copy(id)
        home = folder_of(self._root, machine)
        if home is None or not home.is_dir():
            return False
        try:
            was_packed = os.path.lexists(home / id)
            self._disk.remove_file(home / id)
            if pack.indexes(home):
                return was_packed
            self._collect(home, 0.0)  # nothing was packed there, or nothing is any more; a packing that was cut off leaves one, too
        except BlockingIOError:
            return True
        except OSError as e:
            log.warning("the pack %s could not be cleaned, the next start tries again: %s", home, e)
        return False

    def sweep(self) -> None:
        """What a crash left: indexes of snapshots that are gone, packs without any, and all working copies."""
        for path in sorted(self._root.iterdir()) if self._root.is_dir() else []:
            if path.name.startswith(WORKING):
                self.drop_working_copy(SnapshotId(path.name.removeprefix(WORKING)))
            elif path.name.startswith(pack.PREFIX):
                self._sweep_pack(path)

    def _sweep_pack(self, home: Path) -> None:
        try:
            known = pack.indexes(home)
            loose = [id for id in known if not (self._root / id).is_dir()]
            for id in loose:
                self._disk.remove_file(home / id)
            if loose or not known:
                self._collect(home, pack.LOCK_SECONDS)
        except (OSError, EverforgeError) as e:
            log.warning("the pack %s could not be cleaned, the next start tries again: %s", home, e)

    def _collect(self, home: Path, patience_seconds: float) -> None:
        with contextlib.suppress(FileNotFoundError), locked(home, patience_seconds), Pack(home, self._disk) as opened:
            opened.collect()

    def _working(self, id: SnapshotId) -> Path:
        return self._root / f"{WORKING}{id}"


def _not_unpacked(id: SnapshotId, error: OSError) -> EverforgeError:
    if error.errno in FULL:
        return DiskFull(f"the disk is full: snapshot {id} cannot be unpacked; nothing of it is lost")
    return WakeFailed(f"snapshot {id} cannot be unpacked: {error.strerror}; nothing of it is lost")
