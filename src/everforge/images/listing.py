"""The listing of an image: every path with what it is. Its hash is the image's name, and against it the files are checked."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from .finish import EPOCH_SECONDS

DIFFERENCES_TOLD = 3


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    kind: str  # d, f, l
    mode: int
    size_bytes: int  # of a file; 0 for the others, whose size differs from one file system to another
    content: str  # sha256 of a file, target of a link

    def line(self) -> str:
        return f"{self.kind} {self.mode:04o} {self.size_bytes} {self.content or '-'} {quote(self.path)}"


def list_files(root: Path) -> Iterator[Entry]:
    """In order of path. Owner and times are left out: they depend on who built it and when."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        below = os.path.relpath(folder, root)
        for name in sorted([*folders, *files]):
            path = name if below == "." else f"{below}/{name}"
            yield _entry(f"{folder}/{name}", path)


def _entry(place: str, path: str) -> Entry:
    status = os.lstat(place)
    if stat.S_ISLNK(status.st_mode):
        return Entry(path, "l", 0, 0, quote(os.readlink(place)))  # noqa: PTH115 - a Path would tidy it up
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return Entry(path, "d", mode, 0, "")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{place} is neither a file, a folder nor a link")
    with open(place, "rb") as file:
        return Entry(path, "f", mode, status.st_size, hashlib.file_digest(file, "sha256").hexdigest())


def read_lines(root: Path, below: str = "") -> list[str]:
    """The lines of one folder and all in it, of everything by default."""
    if not below:
        return [entry.line() for entry in list_files(root)]
    inside = (replace(entry, path=f"{below}/{entry.path}") for entry in list_files(root / below))
    return [_entry(str(root / below), below).line(), *(entry.line() for entry in inside)]


def write_listing(lines: Iterable[str], place: Path) -> str:
    """Write it and return its hash, the digest of the content."""
    text = "".join(line + "\n" for line in sorted(lines))
    place.write_text(text, encoding="ascii")
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def differences(root: Path, place: Path, digest: str) -> str:
    """Every byte is read: what is not as listed, in words; "" when all is well."""
    listed = place.read_text(encoding="ascii")
    if hashlib.sha256(listed.encode("ascii")).hexdigest() != digest:
        return "the listing itself was changed"
    known, found = set(listed.splitlines()), {entry.line() for entry in list_files(root)}
    paths = sorted({line.rsplit(" ", 1)[1] for line in known ^ found})
    return _told(paths)


def _told(paths: list[str]) -> str:
    if not paths:
        return ""
    more = f" and {len(paths) - DIFFERENCES_TOLD} more" if len(paths) > DIFFERENCES_TOLD else ""
    return ", ".join("/" + path for path in paths[:DIFFERENCES_TOLD]) + more


@dataclass(frozen=True, slots=True)
class Tally:
    """What a look at every file's metadata gives: cheap enough for each start, and any ordinary change shows in it."""

    entries: int
    size_bytes: int
    untimely: int  # entries whose time is not the one that every file was given


def tally(root: Path) -> Tally:
    entries = size = untimely = 0
    stack = [str(root)]
    while stack:
        with os.scandir(stack.pop()) as found:
            for entry in found:
                status = entry.stat(follow_symlinks=False)
                entries += 1
                untimely += status.st_mtime_ns != EPOCH_SECONDS * 1_000_000_000
                if stat.S_ISREG(status.st_mode):
                    size += status.st_size
                elif entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return Tally(entries, size, untimely)
