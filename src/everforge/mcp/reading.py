"""A part of a machine's file, and no more of it than was asked for."""

from __future__ import annotations

import base64
import codecs
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from everforge import AsyncMachine

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    raw: bytes
    more: bool  # there is more behind it

    def text(self) -> tuple[str, int] | None:
        """As text, and of how many bytes: a character that is cut in two is left for the next part. None if it is no text."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = decoder.decode(self.raw, final=not self.more)
        except UnicodeDecodeError:
            return None
        return (text, len(self.raw) - len(decoder.getstate()[0])) if "\0" not in text else None

    def base64(self) -> str:
        return base64.b64encode(self.raw).decode()


@asynccontextmanager
async def closing(source: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T]]:
    """Whoever stops reading half way gives the connection back."""
    try:
        yield source
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


async def read_part(machine: AsyncMachine, path: str, offset: int, bytes_max: int) -> Part:
    raw = bytearray()
    async with closing(machine.files.stream(path, start=offset)) as chunks:
        async for chunk in chunks:
            raw += chunk
            if len(raw) > bytes_max:
                return Part(bytes(raw[:bytes_max]), more=True)
    return Part(bytes(raw), more=False)
