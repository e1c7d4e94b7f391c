"""The one folder of this computer that is shared: what is in it, and nothing else, whoever moves links about in it meanwhile."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from everforge.wire.errors import InvalidInput

HANDLES = Path("/proc/self/fd")  # where an open file has a path that nobody can turn elsewhere
_HAS_HANDLES = sys.platform == "linux"
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe in its place keeps nobody waiting


@contextmanager
def source(share: Path | None, path: str) -> Generator[tuple[Path, Path]]:
    """A file to read: where it lies, and by which path to open it."""
    with _told(path), ExitStack() as handles:
        base, found = _inside(share, path)
        if not found.is_file():
            raise InvalidInput(f"{path} is not a file of the shared folder {share}: give the path of one")
        if not _HAS_HANDLES:
            yield found, found
            return
        folder = _walk(handles, base, found.parent, make=False)
        file = _open(handles, found.name, _FILE, folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise InvalidInput(f"{path} is not a file any more: give the path of one")
        yield found, HANDLES / str(file)


@contextmanager
def target(share: Path | None, path: str, overwrite: bool) -> Generator[tuple[Path, Path]]:
    """A file to write, whose folders are made, and taken away again if nothing comes: where it will lie, and by which path to write it."""
    with _told(path), ExitStack() as handles:
        base, found = _inside(share, path)
        if found.exists() and not (overwrite and found.is_file()):
            raise InvalidInput(f"{path} is in the shared folder {share} already: give another path, or overwrite=true for a file")
        if not _HAS_HANDLES:
            _make(handles, found.parent)
            yield found, found
            return
        folder = _walk(handles, base, found.parent, make=True)
        yield found, HANDLES / str(folder) / found.name


def _inside(share: Path | None, path: str) -> tuple[Path, Path]:
    """The folder and the file, with every link followed: what leads out of the folder is not in it."""
    if share is None:
        raise InvalidInput("no folder of this computer is shared: whoever starts the server names one with --share FOLDER")
    if "\0" in path:
        raise InvalidInput("a path has no null characters: give the path of a file in the shared folder")
    try:
        base = share.resolve()
        found = (base / path).resolve()
    except RuntimeError as e:
        raise InvalidInput(f"{path} is not in the shared folder {share}: its link leads in a circle") from e
    if found == base or not found.is_relative_to(base):
        raise InvalidInput(f"{path} is not in the shared folder {share}: only files below it can be copied")
    return base, found


def _walk(handles: ExitStack, base: Path, folder: Path, make: bool) -> int:
    """Folder by folder, none of which may be a link by now: so what was checked is what is opened."""
    handle = _open(handles, str(base), _FOLDER & ~getattr(os, "O_NOFOLLOW", 0), None)
    for name in folder.relative_to(base).parts:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=handle)
                _unmake(handles, name, handle)
        handle = _open(handles, name, _FOLDER, handle)
    return handle


def _make(handles: ExitStack, folder: Path) -> None:
    """Where there are no handles."""
    for missing in reversed([above for above in (folder, *folder.parents) if not above.exists()]):
        missing.mkdir(exist_ok=True)
        _unmake(handles, missing, None)


def _unmake(handles: ExitStack, folder: str | Path, within: int | None) -> None:
    """If it comes to nothing: unless somebody has put something there meanwhile."""

    def unmake(kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(OSError):
                os.rmdir(folder, dir_fd=within)

    handles.push(unmake)


def _open(handles: ExitStack, path: str, flags: int, folder: int | None) -> int:
    handle = os.open(path, flags, dir_fd=folder)
    handles.callback(os.close, handle)
    return handle


@contextmanager
def _told(path: str) -> Generator[None]:
    try:
        yield
    except OSError as e:
        raise InvalidInput(f"{path} in the shared folder cannot be used: {(e.strerror or str(e)).lower()}; nothing was copied") from e
