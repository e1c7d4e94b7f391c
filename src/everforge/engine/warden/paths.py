"""Paths that a request names, checked: an image below the images, a snapshot below the snapshots, and nothing else on this host."""

from __future__ import annotations

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
    files = ((name, folder / name) for name in SNAPSHOT_FILES)
    return [name for name, file in files if file.is_symlink() or not file.is_file() or file.stat().st_size == 0]


def _is_below(path: Path, parent: Path) -> bool:
    """Really there: no symlink and no `..` leads out of it."""
    try:
        return path.resolve(strict=True).is_relative_to(parent.resolve(strict=True)) and not path.is_symlink()
    except OSError:
        return False
