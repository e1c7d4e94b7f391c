"""Paths as users give them, and what lies there."""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

from ..wire.errors import (
    DiskFull,
    EverforgeError,
    FileNotFound,
    FileRefused,
    FolderNotEmpty,
    InvalidInput,
    MachineFailed,
    NotAFile,
    NotAFolder,
    TooLarge,
)
from ..wire.files import PIECE_BYTES, FileInfo, FileKind, pack_info, pack_json, shown, to_bytes

TRIES_MAX = 20  # at folders that somebody removes as soon as they are made
_T = TypeVar("_T")

_KINDS: dict[int, FileKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_ERRORS: dict[int, type[EverforgeError]] = {
    errno.ENOENT: FileNotFound,
    errno.ENOTDIR: NotAFolder,
    errno.EISDIR: NotAFile,
    errno.ENXIO: NotAFile,  # a socket, or a device that is not there
    errno.ENODEV: NotAFile,
    errno.ENOTEMPTY: FolderNotEmpty,
    errno.EACCES: FileRefused,
    errno.EPERM: FileRefused,
    errno.EROFS: FileRefused,
    errno.EBUSY: FileRefused,
    errno.EXDEV: FileRefused,
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EFBIG: TooLarge,
    errno.ENAMETOOLONG: InvalidInput,
    errno.ELOOP: InvalidInput,
    errno.EINVAL: InvalidInput,
}


def translate(error: OSError, path: str) -> EverforgeError:
    """What the kernel says, in our words."""
    why = os.strerror(error.errno) if error.errno else str(error)
    return _ERRORS.get(error.errno or 0, MachineFailed)(f"{shown(path) or 'the home folder'}: {why}")


def resolve(home: str, path: str) -> str:
    """An absolute path without `..`: it is the user's own file system, so any place in it may be asked for."""
    found = os.path.normpath(os.path.join(home, path))  # text, and surrogates in it
    return "/" + found.lstrip("/")


def describe(home: str, path: str, status: os.stat_result) -> FileInfo:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
    target = None
    if kind == "link":
        target = os.readlink(path)
    name = os.path.basename(path) or "/"
    return FileInfo(name, _short(home, path), kind, status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode), target)


def look(home: str, path: str) -> FileInfo:
    return describe(home, path, os.lstat(path))


def _short(home: str, path: str) -> str:
    if path == home:
        return ""
    return path[len(home) + 1 :] if path.startswith(home.rstrip("/") + "/") else path


def list_folder(home: str, path: str, after: str, limit: int) -> dict[str, object]:
    """A page of it, by name. Whatever the folder holds, no more than a page is in memory."""
    names = heapq.nsmallest(limit + 1, _names(path, to_bytes(after)))
    files: list[dict[str, object]] = []
    size = 0
    for name in names[:limit]:
        try:
            told = pack_info(look(home, os.path.join(path, os.fsdecode(name))))
        except FileNotFoundError:
            continue  # gone meanwhile
        size += len(pack_json(told)) + 1
        if size > PIECE_BYTES - 4096:  # for the path around them
            return {"path": _short(home, path), "files": files, "next": files[-1]["name"]}
        files.append(told)
    more = len(names) > limit
    return {"path": _short(home, path), "files": files, "next": os.fsdecode(names[limit - 1]) if more else None}


def _names(path: str, after: bytes) -> Iterator[bytes]:
    with os.scandir(os.fsencode(path)) as entries:
        for entry in entries:
            if not after or entry.name > after:
                yield entry.name


def below_parents(path: str, begin: Callable[[], _T]) -> tuple[_T, list[str]]:
    """What `begin` makes in the folder above `path`, and the folders that had to be made for it, outermost first.

    Others are at the same folders: code that makes them, too, and uploads that were given up and take away what they had made. Nobody's upload
    fails for that.
    """
    for _ in range(TRIES_MAX):
        with contextlib.suppress(FileNotFoundError):
            return begin(), []
        made: list[str] = []
        try:
            _make_parents(path, made)
            return begin(), made
        except FileNotFoundError:
            unmake(made)
        except BaseException:
            unmake(made)
            raise
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _make_parents(path: str, made: list[str]) -> None:
    """Each goes to `made` when it is there, and was not made by somebody else just now."""
    missing: list[str] = []
    parent = os.path.dirname(path)
    while parent and not os.path.lexists(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
            made.append(folder)


def unmake(folders: list[str]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return  # somebody has put something there meanwhile


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
