"""A file of this computer that is there when it is whole, and not before."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class NewFile:
    """Written beside the file that it becomes, of which whoever asked for it knows the name."""

    def __init__(self, target: Path) -> None:
        _check_replaceable(target)
        self._target = target
        self._partial = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
        with named(target):
            self.file: IO[bytes] = open(self._partial, "xb")  # noqa: SIM115  closed by whoever keeps or discards it

    def keep(self) -> None:
        with named(self._target):
            self.file.close()
            self._partial.replace(self._target)

    def discard(self) -> None:
        """Nothing is left of it."""
        try:
            self.file.close()  # which writes what it still holds
        finally:
            self._partial.unlink(missing_ok=True)


@contextmanager
def named(target: Path) -> Generator[None]:
    """What goes wrong on the way to a file is said of that file."""
    try:
        yield
    except OSError as e:
        raise OSError(e.errno, e.strerror, str(target)) from e


def _check_replaceable(target: Path) -> None:
    """A device or a pipe would be gone afterwards, and so would a name of what a process has open, as /dev/stdout is: a link into /proc."""
    try:
        mode = target.lstat().st_mode
        if stat.S_ISLNK(mode) and not str(target.readlink()).startswith("/proc/"):
            mode = target.stat().st_mode
    except OSError:
        return  # there is none, or whoever writes it says what is wrong
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
