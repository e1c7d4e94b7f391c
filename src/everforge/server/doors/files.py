"""Files of a machine: one by one, as lists, as archives. A sleeping machine is woken for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import formatdate
from typing import cast

from starlette.responses import Response, StreamingResponse

from everforge.wire import api
from everforge.wire.errors import (
    ArchiveRefused,
    FileNotFound,
    FileRefused,
    FolderNotEmpty,
    GuestTooOld,
    InvalidInput,
    MachineBroken,
    NoCapacity,
    NotAFile,
    NotAFolder,
    RangeInvalid,
    TooLarge,
    TooSlow,
    TransferCut,
    Unauthenticated,
)
from everforge.wire.files import FileInfo, shown

from ..bodies import read_upload
from ..calls import Call
from ..routes import Routes
from ..streams import Cut, Revoked
from ..times import to_wire
from .machines import IN_TURN

routes = Routes("files")
ANY_FILE = (GuestTooOld, *IN_TURN, MachineBroken, NoCapacity, FileNotFound, FileRefused, NotAFolder, TransferCut)
BYTES = "application/octet-stream"
ARCHIVES = {"tar": "application/x-tar", "tar.gz": "application/gzip", "zip": "application/zip"}
# Code in a machine wrote it. Should a browser ever show it, then as nobody's page, and not as something that it only looks like.
UNTRUSTED = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesQuery(api.Query):
    path: str = ""
    limit: int | None = None
    after: str = ""


@routes.add("GET", "/v1/machine/{name}/files", scope="read", errors=ANY_FILE)
async def list_files(call: Call, query: FilesQuery) -> api.FileList:
    """What is in a folder, by name; paths are relative to the home folder unless they begin with a slash."""
    limit = call.service.settings.list_machines_max if query.limit is None else query.limit
    if not 1 <= limit <= call.service.settings.list_machines_max:
        raise InvalidInput(f"limit must be from 1 to {call.service.settings.list_machines_max} files")
    found = await call.machines.files(call.name).list(query.path, query.after, limit)
    shown = [_file(info) for info in found.files]
    return api.FileList(path=found.path, files=shown, next=found.next)


def _file(info: FileInfo) -> api.File:
    return api.File(
        name=shown(info.name),
        path=shown(info.path),
        kind=info.kind,
        size_bytes=info.size_bytes,
        modified_at=to_wire(info.modified_ns / 1e9),
        mode=info.mode,
        target=None if info.target is None else shown(info.target),
    )


@routes.add("GET", "/v1/machine/{name}/files/{path:file}", scope="read", errors=(*ANY_FILE, NotAFile, RangeInvalid), media=(BYTES,))
async def download(call: Call) -> Response:
    """A file's bytes; a range of them if asked."""
    files = call.machines.files(call.name)
    wanted = call.request.headers.get("range")
    start, length = 0, None
    if wanted is not None:
        info, nothing = await files.read(call.path("path"), 0, 0)  # how long it is, links followed
        await anext(nothing, b"")
        start, length = _range(wanted, info.size_bytes)
    info, parts = await files.read(call.path("path"), start, length)
    size = info.size_bytes - start if length is None else length
    headers = {"Content-Length": str(size), "Last-Modified": formatdate(info.modified_ns / 1e9, usegmt=True), "Accept-Ranges": "bytes"}
    headers |= UNTRUSTED
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{start + size - 1}/{info.size_bytes}"
    return StreamingResponse(_sent(call, parts), 200 if wanted is None else 206, headers, BYTES)


async def _sent(call: Call, parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """To the end, while the token is good. A reader who goes away leaves nothing open behind him."""
    async with aclosing(call.service.streams.until_revoked(call.identity, cast("AsyncGenerator[bytes]", parts))) as guarded:
        try:
            async for part in guarded:
                yield part
        except Revoked:
            raise Cut from None


async def _received(call: Call) -> AsyncGenerator[bytes]:
    """What is uploaded, while the token is good."""
    async with aclosing(call.service.streams.until_revoked(call.identity, read_upload(call.request, call.service.settings))) as guarded:
        try:
            async for part in guarded:
                yield part
        except Revoked:
            raise Unauthenticated("the token was revoked before all of it had arrived; nothing was written") from None


def _range(text: str, size: int) -> tuple[int, int]:
    """First byte and how many, of `bytes=a-b`, `bytes=a-` or `bytes=-n`."""
    unit, _, span = text.partition("=")
    first, dash, last = span.strip().partition("-")
    if unit.strip() != "bytes" or not dash or not (first + last).isdecimal() or len(span) > 40:
        raise RangeInvalid(f"a range is given as bytes=first-last, not as {text[:80]!r}", size_bytes=size)
    start = int(first) if first else max(0, size - int(last))
    stop = min(int(last) + 1, size) if first and last else size
    if start >= stop:
        raise RangeInvalid(f"the file has {size} bytes; none of them lies in the range {text[:80]!r}", size_bytes=size)
    return start, stop - start


@routes.add(
    "PUT", "/v1/machine/{name}/files/{path:file}", action="file.write", scope="exec", upload=True,
    errors=(*ANY_FILE, NotAFile, TooLarge, TooSlow),
)  # fmt: skip
async def upload(call: Call) -> api.FileWritten:
    """Write a file, whole or not at all; folders on the way are made."""
    info = await call.machines.files(call.name).write(call.path("path"), _received(call))
    return api.FileWritten(path=info.path, size_bytes=info.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveQuery(api.Query):
    recursive: bool = False


@routes.add("DELETE", "/v1/machine/{name}/files/{path:file}", action="file.delete", scope="exec", errors=(*ANY_FILE, FolderNotEmpty))
async def remove(call: Call, query: RemoveQuery) -> api.Deleted:
    """Delete a file, or a folder."""
    await call.machines.files(call.name).remove(call.path("path"), recursive=query.recursive)
    return api.Deleted(deleted=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveQuery(api.Query):
    path: str = ""
    format: api.ArchiveFormat = "tar"


@routes.add("GET", "/v1/machine/{name}/archive", scope="read", errors=ANY_FILE, media=tuple(ARCHIVES.values()))
async def pack(call: Call, query: ArchiveQuery) -> Response:
    """A folder as an archive."""
    parts = await call.machines.files(call.name).pack(query.path, query.format)
    return StreamingResponse(_sent(call, parts), headers=UNTRUSTED, media_type=ARCHIVES[query.format])


@routes.add(
    "PUT", "/v1/machine/{name}/archive", action="file.unpack", scope="exec", upload=True, errors=(*ANY_FILE, ArchiveRefused, TooLarge, TooSlow)
)
async def unpack(call: Call, query: ArchiveQuery) -> api.Unpacked:
    """Unpack an archive into a folder, whole or not at all."""
    done = await call.machines.files(call.name).unpack(query.path, query.format, _received(call))
    return api.Unpacked(path=query.path, files=done.files, size_bytes=done.size_bytes)
