"""The files of one machine: looked at, read, written, removed, packed and unpacked, whatever else it is doing. A sleeping machine is woken.

Between two exchanges nothing holds the machine: it may be saved, or sleep, and the transfer goes on where it was. Going back to another state cuts
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from everforge.wire.errors import EverforgeError, GuestTooOld, InvalidInput, ProtocolError, TransferCut
from everforge.wire.files import (
    CHUNK_BYTES,
    LIST_MAX,
    NAME_BYTES_MAX,
    PATH_BYTES_MAX,
    Ask,
    FileInfo,
    Format,
    Told,
    pack_fields,
    to_bytes,
    unpack_info,
    unpack_json,
)
from everforge.wire.messages import FILE_HEAD, FileAsk, FileTold
from everforge.wire.sentences import show

from . import requests
from .errands import Errand
from .incarnation import Incarnation
from .keeper import GUEST_TOO_OLD, Keeper

log = logging.getLogger(__name__)
PIECE_BYTES = FileAsk.body_bytes_max - FILE_HEAD.size  # in one record to the guest
LONG_SECONDS = 120.0  # for removing a tree, and for moving in what was unpacked
STALL_SECONDS = 900.0  # of a reader, or of whoever sends: then the transfer is given up
DROP_SECONDS = 5.0  # a guest that does not read in this time does not read at all
SIZE_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Listing:
    path: str
    files: Sequence[FileInfo]
    next: str | None  # a name to list after; None when that was all


@dataclass(frozen=True, slots=True)
class Unpacked:
    files: int
    size_bytes: int


class MachineFiles:
    """`find` gives the machine's keeper as it is at the moment."""

    def __init__(self, find: Callable[[], Awaitable[Keeper]]) -> None:
        self._find = find

    async def stat(self, path: str) -> FileInfo:
        """What is there; a link itself, not what it points at."""
        return unpack_info(await self._ask("stat", _path(path)))

    async def list(self, path: str = "", after: str = "", limit: int = LIST_MAX) -> Listing:
        """Names in the order of their bytes. A page may be shorter than `limit`; `next` says whether there is more."""
        requests.whole("limit", limit, 1, LIST_MAX, "files")
        found = await self._ask("list", _path(path), _name(after), str(limit))
        files, follows, folder = found.get("files"), found.get("next"), found.get("path")
        if not isinstance(files, list) or not isinstance(follows, str | None) or not isinstance(folder, str):
            raise ProtocolError("a clerk's list is not one")
        return Listing(folder, [unpack_info(one) for one in files], follows)  # pyright: ignore[reportUnknownVariableType]

    async def read(self, path: str, start: int = 0, length: int | None = None) -> tuple[FileInfo, AsyncIterator[bytes]]:
        """The file as it is now, and its bytes from `start` on; links are followed. Whoever does not read to the end closes the iterator."""
        requests.whole("start", start, 0, SIZE_MAX, "bytes")
        wanted = SIZE_MAX if length is None else requests.whole("length", length, 0, SIZE_MAX, "bytes")
        transfer = await self._begin("read", _path(path), str(start))
        info = await transfer.opened(unpack_info)
        wanted = min(wanted, max(0, info.size_bytes - start))
        return info, transfer.stream(wanted)

    async def write(self, path: str, data: AsyncIterator[bytes]) -> FileInfo:
        """Folders above it are made. It is there whole when this returns; when anything goes wrong, nothing is, or what was there before."""
        transfer = await self._begin("write", _path(path))
        return unpack_info(await transfer.feed(data))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await self._ask("remove", _path(path), "1" if recursive else "0", seconds=LONG_SECONDS)

    async def pack(self, path: str = "", form: Format = "tar") -> AsyncIterator[bytes]:
        """What is in a folder, as an archive. Whoever does not read to the end closes the iterator."""
        transfer = await self._begin("pack", _path(path), requests.one_of("format", form, Format))
        await transfer.opened(lambda _: None)
        return transfer.stream(None)

    async def unpack(self, path: str, form: Format, data: AsyncIterator[bytes]) -> Unpacked:
        """Into a folder, which is made if need be; all of it, or nothing."""
        transfer = await self._begin("unpack", _path(path), requests.one_of("format", form, Format))
        found = await transfer.feed(data)
        files, size_bytes = found.get("files"), found.get("size_bytes")
        if type(files) is not int or type(size_bytes) is not int:
            raise ProtocolError("a clerk did not say what it has unpacked")
        return Unpacked(files, size_bytes)

    async def _ask(self, *fields: str, seconds: float | None = None) -> dict[str, Any]:
        transfer = await self._begin(*fields, seconds=seconds)
        return await transfer.ended()

    async def _begin(self, *fields: str, seconds: float | None = None) -> _Transfer:
        transfer = _Transfer(await self._find())
        await transfer.open(pack_fields(*fields), seconds)
        return transfer


class _Transfer:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._held = AsyncExitStack()
        self._errand: Errand | None = None
        self._life = keeper.residency.housing.life
        self._first: FileTold | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self, body: bytes, seconds: float | None) -> None:
        self._errand = self._keeper.residency.housing.errands.begin()
        self._held.callback(self._keeper.residency.housing.errands.end, self._errand)
        self._held.enter_context(self._keeper.pinned())
        self._watch()
        try:
            async with self._exchange(0, seconds) as incarnation:
                self._life = self._keeper.residency.housing.life  # it may have been woken just now
                await self._send(incarnation, Ask.OPEN, 0, body)
                (self._first, *_) = await self._errand.heard()
        except BaseException:
            await self.close(told=False)
            raise

    async def opened(self, read: Callable[[Any], Any]) -> Any:
        try:
            return read(unpack_json(self._answer(Told.OPENED)))
        except BaseException:
            await self.close()
            raise

    async def ended(self) -> dict[str, Any]:
        try:
            return unpack_json(self._answer(Told.END))
        finally:
            await self.close(told=False)

    def _answer(self, verb: Told) -> bytes:
        assert self._first is not None
        if self._first.verb != verb:
            raise ProtocolError("a clerk answers what it was not asked")
        return self._first.body

    # --- from the machine --------------------------------------------------------------------------------------------------------------

    async def stream(self, size_bytes: int | None) -> AsyncGenerator[bytes]:
        """So many bytes, or all there are."""
        left = SIZE_MAX if size_bytes is None else size_bytes
        done = False
        try:
            while left and not done:
                pieces, done = await self._receive(min(left, CHUNK_BYTES))
                for piece in pieces:
                    left -= len(piece)
                    yield piece
            if left and size_bytes is not None:
                raise TransferCut(f"the machine sent {left} bytes less than it had said")
        finally:
            await self.close(told=not done)

    async def _receive(self, size_bytes: int) -> tuple[list[bytes], bool]:
        """A chunk, and whether that was the last."""
        pieces: list[bytes] = []
        missing = size_bytes
        async with self._exchange(size_bytes) as incarnation:
            assert self._errand is not None
            await self._send(incarnation, Ask.MORE, size_bytes)
            while missing > 0:
                for told in await self._errand.heard():
                    if told.verb == Told.END:
                        return pieces, True
                    if told.verb != Told.DATA or not told.body:
                        raise ProtocolError("a clerk told something else than data")
                    pieces.append(told.body)
                    missing -= len(told.body)
        return pieces, False

    # --- to the machine ----------------------------------------------------------------------------------------------------------------

    async def feed(self, data: AsyncIterator[bytes]) -> dict[str, Any]:
        """All of it, then what the machine says of it."""
        told = True
        try:
            self._answer(Told.OPENED)
            sent = 0
            async for chunk in _rechunked(data):
                await self._deliver(chunk, sent)
                sent += len(chunk)
            async with self._exchange(0, LONG_SECONDS) as incarnation:
                assert self._errand is not None
                await self._send(incarnation, Ask.FINISH, sent)
                self._first = await self._next()
            told = False
            return unpack_json(self._answer(Told.END))
        finally:
            await self.close(told=told)

    async def _deliver(self, chunk: bytes, at: int) -> None:
        async with self._exchange(0) as incarnation:
            with memoryview(chunk) as view:
                for start in range(0, len(chunk), PIECE_BYTES):
                    await self._send(incarnation, Ask.DATA, at + start, bytes(view[start : start + PIECE_BYTES]))
            await self._send(incarnation, Ask.MORE, at + len(chunk))
            taken = await self._next()
            if taken.verb != Told.TAKEN or taken.number != at + len(chunk):
                raise ProtocolError("a clerk has not taken what it was given")

    async def _next(self) -> FileTold:
        assert self._errand is not None
        return (await self._errand.heard())[0]

    # --- exchanges ---------------------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _exchange(self, size_bytes: int, seconds: float | None = None) -> AsyncGenerator[Incarnation]:
        """Ask and hear, with the machine awake and a deadline."""
        if self._errand is None:
            raise TransferCut(f"nothing has moved for {STALL_SECONDS:g} s, and the transfer was given up")
        deadline = seconds or self._keeper.guest_answer_seconds
        async with self._keeper.at_hand() as incarnation:
            if incarnation.line.protocol < 2:
                raise GuestTooOld(GUEST_TOO_OLD)
            if self._first is not None and self._life != self._keeper.residency.housing.life:
                raise TransferCut("the machine has gone back to another state, or was lost, while files were on their way")
            self._errand.allow(size_bytes)
            try:
                async with incarnation.line.within(deadline):
                    yield incarnation
            except TimeoutError:
                await _drop(incarnation, self._errand)
                raise TransferCut(f"the machine did not answer within {deadline:g} s") from None
        self._watch()

    async def _send(self, incarnation: Incarnation, verb: Ask, number: int = 0, body: bytes = b"") -> None:
        assert self._errand is not None
        await incarnation.line.send_control(FileAsk(self._errand.number, verb, number, body))

    def _watch(self) -> None:
        """Somebody who has begun and never comes again must not hold the keeper for ever."""
        if self._stall is not None:
            self._stall.cancel()
        self._stall = asyncio.get_running_loop().call_later(STALL_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.close())

    async def close(self, *, told: bool = True) -> None:
        """`told`: its clerk may still be at it, and must hear that it is over. One in a sleeping machine finds out by itself when it wakes."""
        if self._stall is not None:
            self._stall.cancel()
        errand, self._errand = self._errand, None
        if errand is None:
            return
        try:
            if told and (incarnation := self._keeper.residency.housing.incarnation) is not None:
                await _drop(incarnation, errand)
        finally:
            await self._held.aclose()


async def _drop(incarnation: Incarnation, errand: Errand) -> None:
    with contextlib.suppress(EverforgeError, TimeoutError):
        async with asyncio.timeout(DROP_SECONDS):
            await incarnation.line.send_control(FileAsk(errand.number, Ask.DROP, 0, b""))


async def _rechunked(data: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The same bytes in chunks of the size that is sent before an answer is waited for."""
    held = bytearray()
    async for piece in data:
        held += piece
        while len(held) >= CHUNK_BYTES:
            yield bytes(held[:CHUNK_BYTES])
            del held[:CHUNK_BYTES]
    if held:
        yield bytes(held)


def _path(value: object) -> str:
    return _text("a path", value, PATH_BYTES_MAX)


def _name(value: object) -> str:
    return _text("a name", value, NAME_BYTES_MAX)


def _text(what: str, value: object, bytes_max: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is text, not {show(value)}")
    if "\0" in value:
        raise InvalidInput(f"{show(value)} holds a NUL, which {what} cannot")
    try:
        size = len(to_bytes(value))
    except UnicodeEncodeError:
        raise InvalidInput(f"{show(value)} holds half a character") from None
    if size > bytes_max:
        raise InvalidInput(f"{what} may have {bytes_max} bytes, not {size}")
    return value


__all__ = ["FileInfo", "Format", "Listing", "MachineFiles", "Unpacked"]
