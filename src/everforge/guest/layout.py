"""The contents of an archive, laid out in a folder of their own, and moved to their place when all of them are sound."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from typing import IO, NamedTuple, Self

from ..wire.errors import ArchiveRefused, NotAFolder
from ..wire.files import shown
from . import places, trees

COPY_BYTES = 256 * 1024
ENTRIES_MAX = 100_000
DEPTH_MAX = 500  # folders in folders
DISK_SHARE = 0.9  # of the room that is left on the disk may be taken
CHECK_EVERY = 64  # entries, between two looks whether anybody still wants it


class Unpacked(NamedTuple):
    files: int
    size_bytes: int


class Layout:
    """`check` raises when nobody wants it any more."""

    def __init__(self, target: str, check: Callable[[], None]) -> None:
        self._target = target
        self._check = check
        self._made: list[str] = []
        self._links: dict[str, str] = {}
        self._folders: dict[str, int] = {}  # with the mode that each gets in the end
        self._entries = 0
        self._files = 0
        self._size_bytes = 0
        self._root = ""
        self._room_bytes = 0

    def __enter__(self) -> Self:
        self._root, self._made = places.below_parents(self._target, self._make_root)
        room = os.statvfs(self._root)
        self._room_bytes = int(room.f_bavail * room.f_frsize * DISK_SHARE)
        return self

    def _make_root(self) -> str:
        """In the folder that it is for, or beside its place when there is none yet."""
        try:
            beside = self._target
            if not stat.S_ISDIR(os.lstat(beside).st_mode):
                raise NotAFolder(f"{shown(beside)} is not a folder")
        except FileNotFoundError:
            beside = os.path.dirname(self._target)
        root = os.path.join(beside, f".everforge-{secrets.token_hex(8)}.part")
        os.mkdir(root, 0o700)
        return root

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        with contextlib.suppress(OSError):
            for found in trees.walk(self._root, folders_last=True):
                trees.remove(found)
            os.rmdir(self._root)
        if kind is not None:
            places.unmake(self._made)

    # --- laying out ----------------------------------------------------------------------------------------------------------------------

    def expect(self, entries: int, size_bytes: int) -> None:
        """What an archive says of itself, where it says so first."""
        if entries > ENTRIES_MAX:
            raise ArchiveRefused(f"there are {entries} entries in it, and {ENTRIES_MAX} may be")
        self._check_room(size_bytes)

    def add_folder(self, name: str, mode: int) -> None:
        path = self._inside(name)
        self._make_folder(path)
        if path != self._root:  # what they are moved into keeps its own
            self._folders[path] = mode | 0o700

    def add_file(self, name: str, size_bytes: int, content: IO[bytes], mode: int, modified_at: int | None) -> None:
        self._check_room(size_bytes)
        path = self._new(name)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            while data := content.read(COPY_BYTES):
                self.spend(len(data))
                places.write_all(fd, data)
                self._size_bytes += len(data)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
        if modified_at is not None:
            os.utime(path, (modified_at, modified_at))
        self._files += 1

    def spend(self, size_bytes: int) -> None:
        """Before it is written: nothing is that would fill the disk."""
        self._check_room(size_bytes)
        self._room_bytes -= size_bytes

    def add_link(self, name: str, target: str) -> None:
        """Made at the end: so nothing is ever laid out through one."""
        if "\0" in target or not target:
            raise ArchiveRefused(f"the link {shown(name)} in it points at nothing that could be")
        path = self._new(name)
        self._links[path] = target
        self._files += 1

    def add_hard_link(self, name: str, target: str) -> None:
        source = self._inside(target)
        if not os.path.isfile(source) or os.path.islink(source):
            raise ArchiveRefused(f"the link {shown(name)} in it points at {shown(target)}, which is no file in it")
        os.link(source, self._new(name))
        self._files += 1

    def spool(self) -> IO[bytes]:
        """A file without a name."""
        return tempfile.TemporaryFile(dir=self._root, buffering=0)

    def _check_room(self, size_bytes: int) -> None:
        if size_bytes > self._room_bytes:
            raise ArchiveRefused(f"what is in it needs more room than is left on the machine's disk: {self._room_bytes} bytes could be used")

    def _inside(self, name: str) -> str:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise ArchiveRefused(f"{shown(name)} in it would lie outside of the folder")
        if len(parts) > DEPTH_MAX:
            raise ArchiveRefused(f"{shown(name)[:100]}... in it lies more than {DEPTH_MAX} folders deep")
        return os.path.join(self._root, *parts)

    def _new(self, name: str) -> str:
        """Its place; one of that name that came earlier is replaced, as the order of an archive wants it."""
        self._count()
        path = self._inside(name)
        if path == self._root or path in self._folders:
            raise ArchiveRefused(f"{shown(name) or 'an entry'} in it is a folder, and something else too")
        self._make_folder(os.path.dirname(path))
        self._links.pop(path, None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return path

    def _make_folder(self, path: str) -> None:
        self._count()
        missing: list[str] = []
        while path != self._root and path not in self._folders:
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            if folder in self._links or os.path.lexists(folder):
                raise ArchiveRefused(f"{shown(self._short(folder))} in it is a folder, and something else too")
            os.mkdir(folder, 0o700)
            self._folders[folder] = 0o755

    def _count(self) -> None:
        self._entries += 1
        if self._entries > 3 * ENTRIES_MAX or self._files >= ENTRIES_MAX or len(self._folders) > ENTRIES_MAX:
            raise ArchiveRefused(f"there are more than {ENTRIES_MAX} entries in it")
        if self._entries % CHECK_EVERY == 0:
            self._check()

    def _short(self, path: str) -> str:
        return path[len(self._root) + 1 :]

    # --- moving in -----------------------------------------------------------------------------------------------------------------------

    def settle(self) -> Unpacked:
        self._make_links()
        if not self._became_target():
            self._check_places()
            self._move_in()
        return Unpacked(self._files, self._size_bytes)

    def _became_target(self) -> bool:
        """In one step, where nothing is yet. False when there is a folder, be it one that somebody made an instant ago."""
        if os.path.lexists(self._target):
            return False
        self._set_modes(self._root)
        os.chmod(self._root, 0o755)
        try:
            os.rename(self._root, self._target)
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def _make_links(self) -> None:
        """All of them, then a look where each leads: a link may go through another."""
        for path, target in self._links.items():
            os.symlink(target, path)
        root = os.path.realpath(self._root)
        for path, target in self._links.items():
            found = os.path.realpath(path)
            if target.startswith("/") or not (found + "/").startswith(root + "/"):
                raise ArchiveRefused(f"the link {shown(self._short(path))} in it leads out of the folder, to {shown(target)}")

    def _check_places(self) -> None:
        """Nothing is moved before it is sure that everything can be."""
        for folder, folders, names in os.walk(self._root):
            there = os.path.join(self._target, self._short(folder)) if folder != self._root else self._target
            for name in (*folders, *names):
                ours, place = os.path.join(folder, name), os.path.join(there, name)
                is_folder = ours in self._folders
                if os.path.lexists(place) and is_folder != (os.path.isdir(place) and not os.path.islink(place)):
                    what = "a folder" if is_folder else "no folder"
                    raise ArchiveRefused(f"{shown(self._short(ours))} in it is {what}, but what is there now is not so")

    def _move_in(self) -> None:
        for folder, folders, names in os.walk(self._root):
            there = os.path.join(self._target, self._short(folder)) if folder != self._root else self._target
            for name in (*folders, *names):
                ours, place = os.path.join(folder, name), os.path.join(there, name)
                if ours in self._folders:
                    places.below_parents(place, lambda place=place: _make_if_missing(place))
                else:  # a file, or a link, also one to a folder
                    places.below_parents(place, lambda ours=ours, place=place: os.replace(ours, place))
        self._set_modes(self._target)

    def _set_modes(self, root: str) -> None:
        """Of the folders, once nothing has to be put in them any more."""
        for folder, mode in self._folders.items():
            with contextlib.suppress(OSError):
                os.chmod(os.path.join(root, self._short(folder)), mode)


def _make_if_missing(folder: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
