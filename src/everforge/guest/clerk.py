"""One errand of the keeper's, done as the user would: a look, a file read or written, something removed, a folder packed or unpacked."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
from collections.abc import Callable, Generator

from ..wire.errors import EverforgeError, FileRefused, InvalidInput, NotAFile, TransferCut
from ..wire.files import LIST_MAX, Ask, Told, pack_info, unpack_fields
from . import archives, places, trees
from .desk import Desk, Dropped, Sink, Source

PART = ".everforge-{}.part"  # beside what it will be


def serve(connection: socket.socket, home: str) -> None:
    """Until the errand is done, has failed or is dropped. Whatever happens, nothing half done is left."""
    desk = Desk(connection)
    path = ""
    try:
        packet = desk.hear()
        what, path, *rest = unpack_fields(packet.body)
        errand = ERRANDS.get(what)
        if errand is None or packet.verb != Ask.OPEN:
            raise InvalidInput("this machine does not know what it is asked to do with a file")
        _do(desk, lambda: errand(desk, home, places.resolve(home, path), *rest), path)
    except (Dropped, ValueError):
        pass
    finally:
        connection.close()


def _do(desk: Desk, errand: Callable[[], None], path: str) -> None:
    try:
        errand()
    except EverforgeError as e:
        desk.fail(e)
    except OSError as e:
        desk.fail(places.translate(e, path))
    except MemoryError:
        desk.fail(TransferCut("the machine has not enough memory left for that"))


# --- looking ---------------------------------------------------------------------------------------------------------------------------


def _stat(desk: Desk, home: str, path: str) -> None:
    desk.answer(Told.END, pack_info(places.look(home, path)))


def _list(desk: Desk, home: str, path: str, after: str, limit: str) -> None:
    desk.answer(Told.END, places.list_folder(home, path, after, min(int(limit), LIST_MAX)))


# --- reading and writing ---------------------------------------------------------------------------------------------------------------


def _read(desk: Desk, home: str, path: str, start: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer must not hold us
    with open(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFile(f"{places.shown(path)} is not a file")
        desk.answer(Told.OPENED, pack_info(places.describe(home, path, status)))
        left = max(0, status.st_size - int(start))
        file.seek(int(start))
        while left:
            data = file.read(min(left, desk.credit()))
            if not data:
                raise TransferCut(f"{places.shown(path)} became shorter while it was read")
            left -= len(data)
            desk.tell_data(data)
        desk.answer(Told.END, {})


def _write(desk: Desk, home: str, path: str) -> None:
    """Beside its place first: whoever reads it meanwhile sees the old file or the new one, whole."""
    path = os.path.realpath(path)  # a link stays, and what it points at is written
    if os.path.lexists(path) and not os.path.isfile(path):
        raise NotAFile(f"{places.shown(path)} is not a file")
    with _part_of(path) as (part, fd):
        with open(fd, "wb", buffering=0) as file:
            desk.answer(Told.OPENED, {})
            while (data := desk.take_data()) is not None:
                places.write_all(file.fileno(), data)
            with contextlib.suppress(OSError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))  # as the one before
        os.replace(part, path)
    desk.answer(Told.END, pack_info(places.look(home, path)))


@contextlib.contextmanager
def _part_of(path: str) -> Generator[tuple[str, int]]:
    part = os.path.join(os.path.dirname(path), PART.format(secrets.token_hex(8)))
    fd, made = places.below_parents(path, lambda: os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    try:
        yield part, fd
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        places.unmake(made)
        raise


# --- removing --------------------------------------------------------------------------------------------------------------------------


def _remove(desk: Desk, home: str, path: str, recursive: str) -> None:
    if home == path or home.startswith(path.rstrip("/") + "/"):
        raise FileRefused(f"{places.shown(path)} holds the home folder, and stays")
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
    elif recursive == "1":
        _remove_tree(desk, path)
    else:
        os.rmdir(path)
    desk.answer(Told.END, {})


def _remove_tree(desk: Desk, path: str) -> None:
    for found in trees.walk(path, folders_last=True):
        desk.check()
        trees.remove(found)
    os.rmdir(path)


# --- archives --------------------------------------------------------------------------------------------------------------------------


def _pack(desk: Desk, home: str, path: str, form: str) -> None:
    os.scandir(path).close()  # says at once what is wrong with it
    desk.answer(Told.OPENED, {})
    sink = Sink(desk)
    archives.pack(path, form, sink)
    sink.finish()
    desk.answer(Told.END, {})


def _unpack(desk: Desk, home: str, path: str, form: str) -> None:
    desk.answer(Told.OPENED, {})
    source = Source(desk)
    unpacked = archives.unpack(os.path.realpath(path), form, source, desk.check)
    desk.answer(Told.END, {"files": unpacked.files, "size_bytes": unpacked.size_bytes})


ERRANDS: dict[str, Callable[..., None]] = {
    "stat": _stat,
    "list": _list,
    "read": _read,
    "write": _write,
    "remove": _remove,
    "pack": _pack,
    "unpack": _unpack,
}
