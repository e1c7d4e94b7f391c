"""The files of a machine. Streams: neither side ever holds a whole file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from everforge.wire import api
from everforge.wire.errors import EverforgeError

from .. import inputs
from ..decoding import decode
from ..newfile import NewFile
from ..packing import pack, unpack
from ..paths import file_path, path_to_delete
from .door import SLOW_SECONDS, AsyncDoor
from .transport import AsyncAnswer, off_loop

CHUNK_BYTES = 256 * 1024
FILES_A_PAGE = 1000
Progress = Callable[[int, int | None], Any]  # bytes so far, and of how many, where that is known


class AsyncFiles:
    """Paths are relative to the machine's home folder, or absolute."""

    def __init__(self, door: AsyncDoor, machine_path: str) -> None:
        self._door, self._path = door, machine_path

    async def list(self, path: str = "") -> AsyncIterator[api.File]:
        """What lies in a folder, by name; pages by itself."""
        after: str | None = None
        while True:
            page = await self._door.get(api.FileList, f"{self._path}/files", {"path": path, "limit": FILES_A_PAGE, "after": after})
            for found in page.files:
                yield found
            if page.next is None:
                return
            after = page.next

    async def read(self, path: str) -> bytes:
        """The whole of it, in memory. `download` is for large ones."""
        parts: list[bytes] = []
        async for chunk in self.stream(path):
            parts.append(chunk)
        return b"".join(parts)

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return (await self.read(path)).decode(encoding)

    async def stream(self, path: str, *, start: int = 0) -> AsyncIterator[bytes]:
        """Its bytes as they come, from `start` on."""
        answer = await self._get(self._url(path), start)
        try:
            async for chunk in self._body(answer):
                yield chunk
        finally:
            await answer.close()

    async def write(self, path: str, content: bytes | str | IO[bytes] | IO[str]) -> api.FileWritten:
        """Whole or not at all; folders on the way are made. What an open file has is read into memory: `upload` is for large ones."""
        read: object = getattr(content, "read", None)
        body = inputs.content(await off_loop(read) if callable(read) else content)
        # The same bytes to the same place: asking again is safe.
        return decode(api.FileWritten, await self._door.ask("PUT", self._url(path), body, again=True, silence_seconds=SLOW_SECONDS))

    async def upload(self, local: str | os.PathLike[str], remote: str, *, progress: Progress | None = None) -> api.FileWritten:
        """Whole or not at all; begins anew after a cut."""
        file: IO[bytes] = await off_loop(_open, local)
        with file:
            return decode(api.FileWritten, await self._put(self._url(remote), file, progress))

    async def download(self, remote: str, local: str | os.PathLike[str], *, progress: Progress | None = None) -> int:
        """Its size in bytes. The local file is there when it is whole, and not before."""
        new: NewFile = await off_loop(NewFile, Path(local))
        try:
            size = await self._fetch(self._url(remote), new.file, progress)
            new.keep()
        except BaseException:
            with suppress(OSError):  # what went wrong first is told
                new.discard()
            raise
        return size

    async def exists(self, path: str) -> bool:
        try:
            answer = await self._get(self._url(path), 0)
        except EverforgeError as e:
            if e.code == "FileNotFound":
                return False
            if e.code == "NotAFile":
                return True
            raise
        await answer.close()
        return True

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        """A file or an empty folder; with `recursive` a folder and all that is in it."""
        await self._door.delete(f"{self._path}/files/{path_to_delete(path)}", {"recursive": recursive or None})

    # --- folders -----------------------------------------------------------------------------------------------------------------------------

    async def upload_folder(self, local: str | os.PathLike[str], remote: str, *, progress: Progress | None = None) -> api.Unpacked:
        """All that lies in a folder, unpacked over there whole or not at all."""
        url = self._door.url(f"{self._path}/archive", {"path": remote, "format": "tar"})
        with tempfile.TemporaryFile(prefix="everforge-") as file:
            await off_loop(pack, Path(local), file)
            return decode(api.Unpacked, await self._put(url, file, progress))

    async def download_folder(self, remote: str, local: str | os.PathLike[str], *, progress: Progress | None = None) -> int:
        """How many files came. What would land outside the local folder is refused."""
        url = self._door.url(f"{self._path}/archive", {"path": remote, "format": "tar"})
        with tempfile.TemporaryFile(prefix="everforge-") as file:
            await self._fetch(url, file, progress)
            file.seek(0)
            return await off_loop(unpack, file, Path(local))

    # --- one transfer ------------------------------------------------------------------------------------------------------------------------

    def _url(self, path: str) -> str:
        return self._door.url(f"{self._path}/files/{file_path(path)}")

    async def _get(self, url: str, start: int) -> AsyncAnswer:
        async def attempt() -> AsyncAnswer:
            return await self._door.send("GET", url, {"Range": f"bytes={start}-"} if start else {}, None, SLOW_SECONDS)

        return await self._door.patiently(attempt, again=True)

    async def _put(self, url: str, file: IO[bytes], progress: Progress | None) -> bytes:
        """The same bytes to the same place: asking again is safe."""

        async def attempt() -> bytes:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            content = _reading(file, size, progress)
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            answer = await self._door.send("PUT", url, headers, content, SLOW_SECONDS)
            return await self._door.finish(answer, "PUT")

        return await self._door.patiently(attempt, again=True)

    async def _fetch(self, url: str, file: IO[bytes], progress: Progress | None) -> int:
        async def attempt() -> int:
            file.seek(0)
            file.truncate()
            answer = await self._door.send("GET", url, {}, None, SLOW_SECONDS)
            try:
                return await self._copy(answer, file, progress)
            finally:
                await answer.close()

        return await self._door.patiently(attempt, again=True)

    async def _copy(self, answer: AsyncAnswer, file: IO[bytes], progress: Progress | None) -> int:
        length = answer.headers.get("content-length", "")
        total, size = int(length) if length.isdigit() else None, 0
        async for chunk in self._body(answer):
            await off_loop(file.write, chunk)
            size += len(chunk)
            if progress is not None:
                progress(size, total)
        return size

    async def _body(self, answer: AsyncAnswer) -> AsyncIterator[bytes]:
        with self._door.cuts("GET"):
            while chunk := await answer.chunk():
                yield chunk


async def _reading(file: IO[bytes], total: int, progress: Progress | None) -> AsyncIterator[bytes]:
    """Exactly as much as was promised, though the file may grow meanwhile."""
    size = 0
    while size < total and (chunk := await off_loop(file.read, min(CHUNK_BYTES, total - size))):
        yield chunk
        size += len(chunk)
        if progress is not None:
            progress(size, total)


def _open(local: str | os.PathLike[str]) -> IO[bytes]:
    return open(local, "rb")
