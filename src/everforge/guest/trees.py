"""A folder with all that is in it, however deep: without recursion, by paths that the kernel takes, and with few open descriptors."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

STEP_BYTES = 2048  # of a path; a longer one goes on from a descriptor of the folder there

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Found(NamedTuple):
    inside: str  # its path within the folder
    path: str  # the same from the folder of `dir_fd`, which is open until the next one is asked for
    dir_fd: int
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


class _Level(NamedTuple):
    folder: Found | None  # None is the outermost
    inside: str  # empty, or with a slash at its end
    path: str  # likewise
    dir_fd: int
    own_fd: bool
    names: list[str]  # to come, last first


def walk(folder: str, *, folders_last: bool = False) -> Iterator[Found]:
    """By name; a folder comes before what is in it, or after that. What goes away meanwhile is left out."""
    levels = [_enter(None, os.open(folder, _FOLDER & ~os.O_NOFOLLOW))]
    try:
        while levels:
            level = levels[-1]
            if not level.names:
                _leave(levels.pop())
                if folders_last and level.folder is not None:
                    yield level.folder
                continue
            name = level.names.pop()
            path = f"{level.path}{name}"
            try:
                status = os.stat(path, dir_fd=level.dir_fd, follow_symlinks=False)
                found = Found(f"{level.inside}{name}", path, level.dir_fd, status)
                below = _enter(found, os.open(path, _FOLDER, dir_fd=level.dir_fd)) if found.is_folder else None
            except FileNotFoundError:
                continue
            if below is not None:
                levels.append(below)
            if below is None or not folders_last:
                yield found
    finally:
        for level in levels:
            _leave(level)


def remove(found: Found) -> None:
    """What `walk` has found, folders last."""
    (os.rmdir if found.is_folder else os.unlink)(found.path, dir_fd=found.dir_fd)


def _enter(folder: Found | None, fd: int) -> _Level:
    """Keeps the descriptor only where the path from the one before gets long."""
    keep = folder is None or len(os.fsencode(folder.path)) > STEP_BYTES
    try:
        names = sorted(os.listdir(fd), reverse=True)
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            os.close(fd)
    inside = "" if folder is None else f"{folder.inside}/"
    if keep or folder is None:
        return _Level(folder, inside, "", fd, True, names)
    return _Level(folder, inside, f"{folder.path}/", folder.dir_fd, False, names)


def _leave(level: _Level) -> None:
    if level.own_fd:
        os.close(level.dir_fd)
