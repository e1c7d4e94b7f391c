"""The language of file transfers, between a keeper and the clerks in its guest. No I/O.

An *errand* is one thing that a clerk is asked to do: a look, a file read or written, a folder packed. It begins with OPEN, goes on in exchanges (ask,
then wait for what is told), and ends with END, FAILED or DROP. What travels is raw bytes in control records of the link: never kept, never on a tape.
Nobody says more than was asked for, so nobody has to keep much.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from .errors import (
    ArchiveRefused,
    DiskFull,
    EverforgeError,
    FileNotFound,
    FileRefused,
    FolderNotEmpty,
    InvalidInput,
    MachineFailed,
    NotAFile,
    NotAFolder,
    ProtocolError,
    TooLarge,
    TransferCut,
)

PATH_BYTES_MAX = 3584  # of a path: it travels in one record of 4096 bytes, with a name to list after
NAME_BYTES_MAX = 255
LIST_MAX = 1000  # entries of a folder in one answer, if they fit in a record
CHUNK_BYTES = 1024 * 1024  # what is asked for, or sent, before the other side's answer is waited for
PIECE_BYTES = 60 * 1024  # of it in one record from the guest

FileKind = Literal["file", "folder", "link", "other"]
Format = Literal["tar", "tar.gz", "zip"]


class Ask(enum.IntEnum):
    OPEN = 1  # the body says what, see `pack_fields`
    MORE = 2  # `number` bytes may be told; of one who writes: say how far you are
    DATA = 3  # to be written at `number`
    FINISH = 4  # that was all of it
    DROP = 5  # never mind: leave nothing behind


class Told(enum.IntEnum):
    OPENED = 1  # the body is JSON
    DATA = 2
    TAKEN = 3  # `number` bytes are written
    END = 4  # done; the body is JSON
    FAILED = 5  # the body is JSON: code and message


ERRORS: Mapping[str, type[EverforgeError]] = {
    e.code: e
    for e in (FileNotFound, NotAFile, NotAFolder, FolderNotEmpty, FileRefused, TooLarge, ArchiveRefused, DiskFull, InvalidInput, TransferCut)
}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file as its folder shows it: links are not followed. Bytes of a name that are no UTF-8 are lone surrogates here; see `shown`."""

    name: str
    path: str  # relative to the home folder, or absolute where it lies elsewhere
    kind: FileKind
    size_bytes: int
    modified_ns: int  # since 1970
    mode: int  # permission bits
    target: str | None = None  # of a link


def shown(name: str) -> str:
    """For people and for JSON: bytes that are no UTF-8 as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def to_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def to_text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def pack_fields(*fields: str) -> bytes:
    """What to do, with which path, and how. No file name holds NUL, so it stands between them."""
    return b"\0".join(map(to_bytes, fields))


def unpack_fields(body: bytes) -> list[str]:
    return [to_text(field) for field in body.split(b"\0")]


def pack_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def unpack_json(body: bytes) -> dict[str, Any]:
    """Of a hostile writer: an object, or ProtocolError. A record is too short to hold anything heavy."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise ProtocolError("a clerk's answer is not JSON") from e
    if not isinstance(found, dict):
        raise ProtocolError("a clerk's answer is not an object")
    return cast(dict[str, Any], found)


def pack_info(info: FileInfo) -> dict[str, Any]:
    return {name: getattr(info, name) for name in FileInfo.__slots__}


def unpack_info(found: Any) -> FileInfo:
    """Raises ProtocolError for what no clerk of ours would tell."""
    if not isinstance(found, dict):
        raise ProtocolError("a clerk did not describe a file")
    values = cast(dict[str, Any], found)
    texts, numbers = ("name", "path"), ("size_bytes", "modified_ns", "mode")
    if (
        set(values) != set(FileInfo.__slots__)
        or not all(isinstance(values[n], str) for n in texts)
        or not all(type(values[n]) is int and abs(values[n]) < 2**63 for n in numbers)
        or values["kind"] not in ("file", "folder", "link", "other")
        or not isinstance(values["target"], str | None)
        or values["size_bytes"] < 0
    ):
        raise ProtocolError("a clerk described a file that cannot be")
    return FileInfo(**values)


def error_of(body: bytes) -> EverforgeError:
    """What a clerk says went wrong, as one of ours."""
    found = unpack_json(body)
    message = str(found.get("message", ""))[:1000].encode("utf-8", "replace").decode()
    return ERRORS.get(str(found.get("code")), MachineFailed)(message or "the machine does not say why")
