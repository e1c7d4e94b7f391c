"""Is a snapshot what its manifest says? All of it blocks."""

from __future__ import annotations

from pathlib import Path

from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SnapshotId

from . import manifests
from .base import Manifest
from .disk import Disk


def sizes_in(id: SnapshotId, folder: Path, disk: Disk) -> dict[str, int]:
    try:
        return disk.sizes(folder)
    except OSError as e:
        raise damaged(id, str(e.filename or folder.name), e.strerror or "cannot be read") from e


def check_sizes(manifest: Manifest, folder: Path, disk: Disk) -> None:
    sizes = sizes_in(manifest.snapshot, folder, disk)
    sizes.pop(manifests.NAME, None)
    for name, (size, _) in manifest.files.items():
        found = sizes.pop(name, None)
        if found is None:
            raise damaged(manifest.snapshot, name, "is missing")
        if found != size:
            raise damaged(manifest.snapshot, name, f"is {'truncated' if found < size else 'too long'}: {found} bytes instead of {size}")
    if sizes:
        raise damaged(manifest.snapshot, min(sizes), "does not belong to it")


def check_hash(manifest: Manifest, folder: Path, name: str, disk: Disk) -> None:
    size, digest = manifest.files[name]
    try:
        found = disk.hash_file(folder / name)
    except FileNotFoundError as e:
        raise damaged(manifest.snapshot, name, "is missing") from e
    except OSError as e:
        raise damaged(manifest.snapshot, name, f"cannot be read: {e.strerror}") from e
    if found != (size, digest):
        what = "has changed: its hash is another" if found[0] == size else f"has {found[0]} bytes instead of {size}"
        raise damaged(manifest.snapshot, name, what)


def damaged(id: SnapshotId, file: str, what: str) -> SnapshotDamaged:
    return SnapshotDamaged(f"snapshot {id}: {file} {what}", snapshot=id, file=file)
