"""Folders as tar, tar.gz and zip, both ways, as streams.

Unpacking trusts nothing: whatever is in an archive is laid out in a folder of its own first, and only what is sound as a whole is moved to its place.
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

from ..wire.errors import ArchiveRefused, EverforgeError, InvalidInput, TransferCut
from ..wire.files import shown
from . import trees
from .desk import Sink, Source
from .layout import COPY_BYTES, Layout, Unpacked
from .places import write_all
from .trees import Found

COMPRESSION = 5  # of 9: half the time of the strongest, and nearly as small
ZIP_YEAR_MIN = (1980, 1, 1, 0, 0, 0)
ZIP_NAME_BYTES_MAX = 65_535
LINK_BYTES_MAX = 4096


# --- packing ---------------------------------------------------------------------------------------------------------------------------


def pack(folder: str, form: str, sink: Sink) -> None:
    """Files, folders and links below `folder`. Sockets, pipes and devices are left out: they mean nothing elsewhere."""
    out = cast(IO[bytes], sink)
    if form == "tar":
        _pack_tar(folder, out)
    elif form == "tar.gz":
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=COMPRESSION, mtime=0) as compressed:
            _pack_tar(folder, cast(IO[bytes], compressed))
    elif form == "zip":
        _pack_zip(folder, out)
    else:
        raise InvalidInput(f"{form} is no kind of archive that is known here: use tar, tar.gz or zip")


def _entries(folder: str) -> Iterator[Found]:
    for found in trees.walk(folder):
        if stat.S_IFMT(found.status.st_mode) in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
            yield found


def _open_file(entry: Found) -> IO[bytes] | None:
    """None when it is no file any more."""
    try:
        fd = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.dir_fd)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.ELOOP):
            return None
        raise
    file = open(fd, "rb", buffering=0)  # noqa: SIM115 - the caller's
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return file
    file.close()
    return None


def _pack_tar(folder: str, out: IO[bytes]) -> None:
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=COPY_BYTES) as tar:
        for entry in _entries(folder):
            info = tarfile.TarInfo(entry.inside)
            info.mode, info.mtime = stat.S_IMODE(entry.status.st_mode) & 0o777, int(entry.status.st_mtime)
            info.uid = info.gid = 1000
            if stat.S_ISDIR(entry.status.st_mode):
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif stat.S_ISLNK(entry.status.st_mode):
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(entry.path, dir_fd=entry.dir_fd)
                tar.addfile(info)
            elif file := _open_file(entry):
                with file:
                    info.size = os.fstat(file.fileno()).st_size
                    _add_file(tar, info, file)
            cast(Any, tar).members.clear()  # it would remember them all


def _add_file(tar: tarfile.TarFile, info: tarfile.TarInfo, file: IO[bytes]) -> None:
    try:
        tar.addfile(info, file)
    except OSError as e:
        if e.errno is None:  # tarfile's own: it read less than the file was long
            raise TransferCut(f"{shown(info.name)} became shorter while it was packed") from e
        raise


def _pack_zip(folder: str, out: IO[bytes]) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
        for entry in _entries(folder):
            mode = entry.status.st_mode
            info = zipfile.ZipInfo(shown(entry.inside) + ("/" if stat.S_ISDIR(mode) else ""), _zip_time(entry.status))
            if len(info.filename.encode()) > ZIP_NAME_BYTES_MAX:
                raise ArchiveRefused(f"{shown(entry.inside)[:100]}... has too long a path for zip: use tar")
            info.external_attr = (mode & 0xFFFF) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            if stat.S_ISDIR(mode):
                info.external_attr |= 0x10
                archive.writestr(info, b"")
            elif stat.S_ISLNK(mode):
                archive.writestr(info, os.fsencode(os.readlink(entry.path, dir_fd=entry.dir_fd)))
            elif file := _open_file(entry):
                with file:
                    info.file_size = os.fstat(file.fileno()).st_size
                    with archive.open(info, "w") as member:
                        while data := file.read(COPY_BYTES):
                            member.write(data)


def _zip_time(status: os.stat_result) -> tuple[int, int, int, int, int, int]:
    moment = time.gmtime(status.st_mtime)[:6]
    return moment if ZIP_YEAR_MIN <= moment <= (2107, 12, 31, 23, 59, 59) else ZIP_YEAR_MIN


# --- unpacking -------------------------------------------------------------------------------------------------------------------------


def unpack(folder: str, form: str, source: Source, check: Callable[[], None]) -> Unpacked:
    """Into `folder`, beside what is there; all of it, or nothing. Raises ArchiveRefused. `check` raises when nobody wants it any more."""
    with Layout(folder, check) as layout:
        try:
            if form == "tar":
                _lay_out_tar(cast(IO[bytes], source), layout)
            elif form == "tar.gz":
                with gzip.GzipFile(fileobj=cast(IO[bytes], source)) as compressed:
                    _lay_out_tar(cast(IO[bytes], compressed), layout)
            elif form == "zip":
                _lay_out_zip(source, layout)
            else:
                raise InvalidInput(f"{form} is no kind of archive that is known here: use tar, tar.gz or zip")
            source.drain()
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile, NotImplementedError, RuntimeError) as e:
            raise ArchiveRefused(f"it is not a sound {form} archive: {e or type(e).__name__}") from e
        except EverforgeError:
            raise
        except (ValueError, OverflowError, MemoryError) as e:
            raise ArchiveRefused(f"it is not a sound {form} archive: {type(e).__name__}") from e
        return layout.settle()


def _lay_out_tar(stream: IO[bytes], layout: Layout) -> None:
    with tarfile.open(fileobj=stream, mode="r|", bufsize=COPY_BYTES, errorlevel=2) as tar:
        for info in tar:
            mode, when = info.mode & 0o777, int(info.mtime)
            if info.isdir():
                layout.add_folder(info.name, mode)
            elif info.isreg():
                layout.add_file(info.name, info.size, cast(IO[bytes], tar.extractfile(info)), mode, when)
            elif info.issym():
                layout.add_link(info.name, info.linkname)
            elif info.islnk():
                layout.add_hard_link(info.name, info.linkname)
            else:
                raise ArchiveRefused(f"{shown(info.name)} in it is a device or a pipe")
            cast(Any, tar).members.clear()  # it would remember them all


def _lay_out_zip(source: Source, layout: Layout) -> None:
    """Its list of contents comes last, so it lies on the disk first."""
    with layout.spool() as file:
        while data := source.read(COPY_BYTES):
            layout.spend(len(data))
            write_all(file.fileno(), data)
        with zipfile.ZipFile(file) as archive:
            layout.expect(len(archive.infolist()), sum(info.file_size for info in archive.infolist()))
            for info in archive.infolist():
                _lay_out_member(archive, info, layout)


def _lay_out_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, layout: Layout) -> None:
    kind, mode = stat.S_IFMT(info.external_attr >> 16), (info.external_attr >> 16) & 0o777
    if info.flag_bits & 0x1:
        raise ArchiveRefused(f"{shown(info.filename)} in it is encrypted")
    if info.is_dir():
        layout.add_folder(info.filename, mode or 0o755)
    elif kind == stat.S_IFLNK:
        with archive.open(info) as member:
            layout.add_link(info.filename, os.fsdecode(member.read(LINK_BYTES_MAX)))
    elif kind in (0, stat.S_IFREG):
        with archive.open(info) as member:
            layout.add_file(info.filename, info.file_size, member, mode or 0o644, None)
    else:
        raise ArchiveRefused(f"{shown(info.filename)} in it is a device or a pipe")
