"""The file of a client on this disk: read, kept beside itself as it was, and written whole or not at all.

It is another program's, which may write it at the same moment: what has changed since it was read is never written over.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...failures import LocalTrouble

BYTES_MAX = 16 * 1024 * 1024  # Claude Code keeps more than settings in its file
BACKUPS_MAX = 5  # of one file; older ones go
IN_A_SECOND_MAX = 99
MARK = ".everforge-backup-"
_BACKUP = re.compile(r"\d{8}-\d{6}(-\d\d)?")
UNCHANGED = "nothing was changed"


class Meanwhile(Exception):
    """Somebody else wrote the file after it was read."""


@dataclass(frozen=True)
class Found:
    """A file as it was when it was read; without data there was none."""

    path: Path  # where it really lies, when a link led there
    data: bytes | None
    status: os.stat_result | None = None


def read(path: Path, bytes_max: int = BYTES_MAX) -> Found:
    """LocalTrouble for what is no file, or cannot be read, or is too long."""
    with _told(path):
        real = path.resolve()
        try:
            handle = os.open(real, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            return Found(real, None)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise IsADirectoryError
            data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        longest = f"{bytes_max // 2**20} MB" if bytes_max >= 2**20 else f"{bytes_max // 2**10} KB"
        raise LocalTrouble(f"{path} is longer than {longest}, which is no configuration: {UNCHANGED}")
    return Found(real, data, status)


def check_writable(found: Found) -> None:
    """LocalTrouble when it is not to be written: one that is read-only for everybody is so for root, too."""
    if found.status is not None and (not found.status.st_mode & 0o222 or not _may(found.path, os.W_OK)):
        raise LocalTrouble(f"{found.path} is read-only: {UNCHANGED}; make it writable (`chmod u+w`) and try again")
    folder = found.path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise LocalTrouble(f"{folder} is not a folder, and the file should be below it: {UNCHANGED}; move it away, or give a file with --config")
    if not _may(folder, os.W_OK | os.X_OK):
        raise LocalTrouble(f"the folder {folder} is read-only: {UNCHANGED}; make it writable, or give another file with --config")


@dataclass(frozen=True)
class Rights:
    """Who may do what with the file, as modes."""

    new: int = 0o600  # when it was not there
    most: int = 0o7777  # what is left of them when it was


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def write(found: Found, data: bytes, rights: Rights) -> Path | None:
    """In place of what was found; where that is kept.

    Meanwhile when it is not any more what was found, and then nothing is written.
    """
    check_writable(found)
    with _told(found.path):
        found.path.parent.mkdir(parents=True, exist_ok=True)
        name = _temporary(found, data, rights)
        backup: Path | None = None
        try:
            _check_same(found)
            backup = _keep(found)
            Path(name).replace(found.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            if backup is not None:
                backup.unlink(missing_ok=True)
            raise
        _sync(found.path.parent)
    _forget_old(found.path)
    return backup or _kept_already(found)


def delete(found: Found) -> Path | None:
    """Where it is kept."""
    check_writable(found)
    with _told(found.path):
        _check_same(found)
        backup = _keep(found)
        found.path.unlink()
        _sync(found.path.parent)
    _forget_old(found.path)
    return backup or _kept_already(found)


def backups(path: Path) -> list[Path]:
    """Of this file, newest first."""
    with suppress(OSError):
        names = [one.name for one in path.parent.iterdir() if one.name.startswith(path.name + MARK)]
        return [path.with_name(name) for name in sorted(names, reverse=True) if _BACKUP.fullmatch(name[len(path.name + MARK) :])]
    return []


def _temporary(found: Found, data: bytes, rights: Rights) -> str:
    """Beside it, with its owner and its mode."""
    handle, name = tempfile.mkstemp(dir=found.path.parent, prefix=f".{found.path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _dress(handle, found.status, rights)
            os.fsync(handle)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return name


def _dress(handle: int, like: os.stat_result | None, rights: Rights) -> None:
    if not hasattr(os, "fchmod") or not hasattr(os, "fchown"):
        return  # Windows has its own ways, and gives the folder's rights
    if like is not None:
        if like.st_uid != os.geteuid():
            os.fchown(handle, like.st_uid, like.st_gid)
        elif like.st_gid != os.getegid():
            with suppress(PermissionError):  # a group that we are not in: it stays ours, who own the file
                os.fchown(handle, -1, like.st_gid)
    os.fchmod(handle, rights.new if like is None else stat.S_IMODE(like.st_mode) & rights.most)


def _check_same(found: Found) -> None:
    now = read(found.path)
    if now.data != found.data:
        raise Meanwhile


def _keep(found: Found) -> Path | None:
    """What was found, beside it, for its owner alone. None when there was nothing, or when it is kept already."""
    if found.data is None or _kept_already(found) is not None:
        return None
    stamp, first = _next_stamp(found.path)
    for number in range(first, IN_A_SECOND_MAX + 1):
        path = found.path.with_name(found.path.name + MARK + (stamp if number == 1 else f"{stamp}-{number:02}"))
        with suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(found.data)
                file.flush()
                _dress(handle, found.status, Rights(most=0o600))
                os.fsync(handle)
            return path
    raise FileExistsError(f"there are {IN_A_SECOND_MAX} backups of this second already")


def _next_stamp(path: Path) -> tuple[str, int]:
    """By which the next backup is the newest: after those there are, though they be of this second, or the clock have been set back."""
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    newest = next((one.name[len(path.name + MARK) :] for one in backups(path)), "")
    if newest[: len(now)] < now:
        return now, 1
    return newest[: len(now)], int(newest[len(now) + 1 :] or 1) + 1


def _kept_already(found: Found) -> Path | None:
    newest = next(iter(backups(found.path)), None)
    with suppress(OSError, LocalTrouble):
        if newest is not None and found.data is not None and read(newest).data == found.data:
            return newest
    return None


def _forget_old(path: Path) -> None:
    for old in backups(path)[BACKUPS_MAX:]:
        with suppress(OSError):
            old.unlink()


def _sync(folder: Path) -> None:
    with suppress(OSError):  # where a folder cannot be opened, as on Windows, it needs none
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _told(path: Path) -> Generator[None]:
    """What the operating system says about it, in a sentence that says that nothing was changed."""
    try:
        yield
    except IsADirectoryError as e:
        raise LocalTrouble(f"{path} is not a file: {UNCHANGED}; move it away, or give another file with --config") from e
    except (OSError, RuntimeError) as e:
        why = (e.strerror or str(e)).lower() if isinstance(e, OSError) else "the link leads in a circle"
        raise LocalTrouble(f"{path}: {why}; {UNCHANGED}") from e
