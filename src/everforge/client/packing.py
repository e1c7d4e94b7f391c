"""Folders of this computer as archives, and back. Blocks: whoever has an event loop calls it off that."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import IO

from everforge.wire.errors import ArchiveRefused, InvalidInput


def pack(source: Path, target: IO[bytes]) -> None:
    """What lies in it, with names relative to it. Sockets, pipes and devices have nothing to carry over, and are left out."""
    if not source.is_dir():
        raise InvalidInput(f"{source} is not a folder")
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in sorted(source.iterdir()):
            archive.add(entry, arcname=entry.name, filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (entry.isfile() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def unpack(source: IO[bytes], target: Path) -> int:
    """How many files. The archive comes from a machine, whose code may be anyone's: nothing may land outside the folder, and no device."""
    target.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.realpath(target))
    files = 0
    try:
        with tarfile.open(fileobj=source, mode="r:") as archive:
            for entry in archive:
                _extract(archive, entry, root)
                files += not entry.isdir()
    except tarfile.TarError as e:
        raise ArchiveRefused(f"the archive cannot be read: {e}") from e
    return files


def _extract(archive: tarfile.TarFile, entry: tarfile.TarInfo, root: Path) -> None:
    # The folder is asked where it really lies each time: a link made by an earlier entry may lead anywhere.
    place = _inside(root, root / entry.name, entry.name)
    if entry.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.is_file():
        place.unlink()
    if entry.issym():
        _inside(root, place.parent / entry.linkname, entry.name, whole=True)
        place.symlink_to(entry.linkname)
        return
    content = archive.extractfile(entry) if entry.isfile() or entry.islnk() else None
    if content is None:
        raise ArchiveRefused(f"{entry.name!r} is neither a file nor a folder nor a link: it is not unpacked here")
    with content, open(place, "xb") as file:
        shutil.copyfileobj(content, file)
    place.chmod(entry.mode & 0o755 | 0o600)
    os.utime(place, (entry.mtime, entry.mtime))


def _inside(root: Path, place: Path, name: str, *, whole: bool = False) -> Path:
    """Its folder as it really is; with `whole` the last part is followed, too."""
    real = Path(os.path.realpath(place if whole else place.parent)) / ("" if whole else place.name)
    if "\0" in name or ".." in (real.name, place.name) or (real != root and root not in real.parents):
        raise ArchiveRefused(f"{name!r} in the archive would land outside of {root}: it is not unpacked here")
    return real
