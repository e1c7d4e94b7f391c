"""Paths that a request names, checked: an image below the images, a snapshot below the snapshots, and nothing else on this host."""

from __future__ import annotations

import stat
from pathlib import Path

from everforge.wire.errors import InvalidInput, SnapshotDamaged

SNAPSHOT_FILES = ("checkpoint.img", "pages.img", "pages_meta.img")


def check_image(path: str, images: Path) -> None:
    image = Path(path)
    if not _is_below(image, images) or not image.is_dir():
        raise InvalidInput(f"there is no image at {image} below {images}")


def empty_folder(path: str, snapshots: Path) -> Path:
    folder = Path(path)
    if not _is_below(folder, snapshots) or not folder.is_dir() or any(folder.iterdir()):
        raise InvalidInput(f"there is no empty folder {folder} below {snapshots}")
    return folder


def snapshot(path: str, snapshots: Path) -> Path:
    folder = Path(path)
    if not _is_below(folder, snapshots):
        raise InvalidInput(f"there is no snapshot {folder} below {snapshots}")
    if lacking := missing(folder):
        raise SnapshotDamaged(f"the snapshot in {folder} has no file {lacking[0]}")
    return folder


def missing(folder: Path) -> list[str]:
    return [name for name in SNAPSHOT_FILES if not _is_written(folder / name)]


def _is_written(file: Path) -> bool:
    try:
        found = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _is_below(path: Path, parent: Path) -> bool:
    """Really there: no symlink and no `..` leads out of it. The parent is a real path already."""
    try:
        return path.resolve(strict=True).is_relative_to(parent) and not path.is_symlink()
    except OSError:
        return False
