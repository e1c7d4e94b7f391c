"""Everything that the snapshot folder does to a disk goes through `Disk`: one place for the safe flags, and one where a test can make it fail.

All of it blocks; call it from a thread.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from pathlib import Path

import xxhash

from everforge.wire.errors import DiskFull, SaveFailed

CHUNK_BYTES = 4 * 1024 * 1024  # a thread waits for the interpreter's lock after each: few and large
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PUNCH_HOLE_KEEP_SIZE = 0x01 | 0x02  # of fallocate(2), which Python does not have with its modes


class NotRegular(OSError):
    """A link, a folder, a device: nothing that we have put there."""


class Disk:
    def make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)

    def write_file(self, path: Path, data: bytes) -> None:
        """A new file, synced."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)

    def sync(self, path: Path) -> None:
        """A file's contents, or a folder's list of names."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """`new` must not be there: a finished snapshot is never replaced."""
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, "there is one already", str(new))
        old.rename(new)

    def replace(self, old: Path, new: Path) -> None:
        old.replace(new)

    def link(self, old: Path, new: Path) -> None:
        os.link(old, new, follow_symlinks=False)

    def remove_file(self, path: Path) -> None:
        """One that is not there is fine."""
        path.unlink(missing_ok=True)

    def remove_tree(self, folder: Path) -> None:
        shutil.rmtree(folder)

    def sizes(self, folder: Path) -> dict[str, int]:
        """Every name in it, with its size; raises NotRegular where one is not a plain file."""
        sizes: dict[str, int] = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    raise NotRegular(errno.EINVAL, "not a plain file", entry.name)
                sizes[entry.name] = status.st_size
        return sizes

    def read_file(self, path: Path, size_max: int) -> bytes:
        with open(_open_regular(path), "rb") as file:
            data = file.read(size_max + 1)
        if len(data) > size_max:
            raise OSError(errno.EFBIG, f"larger than {size_max} bytes", str(path))
        return data

    def open_file(self, path: Path, *, write: bool = False) -> int:
        """A plain file, made now if it is to be written and is not there. The caller closes the descriptor."""
        return _open_regular(path, os.O_RDWR | os.O_CREAT if write else os.O_RDONLY)

    def read_at(self, descriptor: int, count: int, offset: int) -> bytes:
        """Fewer only at the end of the file."""
        data = os.pread(descriptor, count, offset)
        while len(data) < count and (more := os.pread(descriptor, count - len(data), offset + len(data))):
            data += more
        return data

    def write_at(self, descriptor: int, data: bytes, offset: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, offset)
            view, offset = view[written:], offset + written

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def punch(self, descriptor: int, offset: int, count: int) -> None:
        """Give the space back; the size stays. Where the file system cannot, nothing happens."""
        if _libc.fallocate(descriptor, PUNCH_HOLE_KEEP_SIZE, ctypes.c_longlong(offset), ctypes.c_longlong(count)):
            error = ctypes.get_errno()
            if error not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise OSError(error, os.strerror(error))

    def hash_file(self, path: Path) -> tuple[int, str]:
        """Its size and its XXH3-128: no machine sleeps or wakes before it is known, so it must cost little more than reading."""
        descriptor = _open_regular(path)
        try:
            digest, size, chunk = xxhash.xxh3_128(), 0, memoryview(bytearray(CHUNK_BYTES))
            while count := os.readv(descriptor, [chunk]):
                digest.update(chunk[:count])
                size += count
            return size, digest.hexdigest()
        finally:
            os.close(descriptor)


_libc = ctypes.CDLL(None, use_errno=True)


def _open_regular(path: Path, mode: int = os.O_RDONLY) -> int:
    # O_NONBLOCK: a pipe that someone put there must not hold us; on plain files it means nothing.
    descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(errno.EINVAL, "not a plain file", path.name)
    return descriptor


def not_saved(error: OSError, path: Path) -> SaveFailed:
    if error.errno in FULL:
        return DiskFull(f"the disk under {path} is full: nothing was saved")
    return SaveFailed(f"nothing was saved under {path}: {error}")
