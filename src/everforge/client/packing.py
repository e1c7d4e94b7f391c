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
    """How many files. The archive comes from a machine, whose code may be anyone's: nothing may land or lead outside the folder, and no device."""
    target.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.realpath(target))
    files = 0
    links: list[Path] = []
    strays: list[Path] = []
    try:
        with tarfile.open(fileobj=source, mode="r:") as archive:
            for entry in archive:
                _extract(archive, entry, root, links)
                files += not entry.isdir()
    except (tarfile.TarError, KeyError, RecursionError, ValueError, OverflowError) as e:  # what tarfile raises for nonsense
        raise ArchiveRefused(f"the archive cannot be read: {e}") from e
    finally:
        # None leads out by itself; but one may pass through a link that was in the folder before.
        strays += [link for link in links if link.is_symlink() and not _is_inside(root, link)]
        for link in strays:
            link.unlink()
    if strays:
        raise _outside(str(strays[0].relative_to(root)), root)
    return files


def _extract(archive: tarfile.TarFile, entry: tarfile.TarInfo, root: Path, links: list[Path]) -> None:
    place = _place(root, entry)
    if entry.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.is_file():
        place.unlink()
    if entry.issym():
        _check_link(root, place, entry)
        place.symlink_to(entry.linkname)
        links.append(place)
        return
    content = archive.extractfile(entry) if entry.isfile() or entry.islnk() else None
    if content is None:
        raise ArchiveRefused(f"{entry.name!r} is neither a file nor a folder nor a link: it is not unpacked here")
    with content, open(place, "xb") as file:
        shutil.copyfileobj(content, file)
    place.chmod(entry.mode & 0o755 | 0o600)
    os.utime(place, (entry.mtime, entry.mtime))


def _place(root: Path, entry: tarfile.TarInfo) -> Path:
    """In its folder as that really is, now: a link made by an earlier entry may lead to another."""
    name = Path(entry.name)
    if "\0" in entry.name or name.anchor or ".." in name.parts:
        raise _outside(entry.name, root)
    if not name.parts and entry.isdir():
        return root
    if not name.parts or not _is_inside(root, (root / name).parent):
        raise _outside(entry.name, root)
    return Path(os.path.realpath((root / name).parent)) / name.name


def _check_link(root: Path, place: Path, entry: tarfile.TarInfo) -> None:
    """It goes up first, no further than to the root, and then only down.

    So it stays inside whatever is made later: its own folder is real and stays one, and what it passes on its way down is a folder, or a link of
    which the same is true. Behind a name, `..` would mean another folder once that name is a link.
    """
    to = Path(entry.linkname)
    ups = to.parts.count("..")
    if ".." in to.parts[ups:]:
        raise ArchiveRefused(f"{entry.name!r} in the archive is a link to {entry.linkname!r}: with .. behind a name it might lead outside of {root}")
    if not entry.linkname or "\0" in entry.linkname or to.anchor or ups > len(place.parent.relative_to(root).parts):
        raise _outside(entry.name, root)


def _is_inside(root: Path, place: Path) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(root)


def _outside(name: str, root: Path) -> ArchiveRefused:
    return ArchiveRefused(f"{name!r} in the archive would land or lead outside of {root}: it is not unpacked here")
