"""Passing bytes on: none is lost by a cut behind it, and nothing is left running."""

from __future__ import annotations

import asyncio
import socket

import pytest

from everforge.egress.bytestream import Cut, SocketStream, Stillness, together


async def test_what_was_written_is_with_the_kernel_so_that_a_cut_behind_it_loses_nothing() -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    theirs.setblocking(False)
    stream = SocketStream(*await asyncio.open_connection(sock=ours))
    writing = asyncio.ensure_future(stream.write(b"x" * 60_000))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    heard = 0
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        while not writing.done():
            heard += len(await loop.sock_recv(theirs, 65536))
        stream.cut()
        while data := await loop.sock_recv(theirs, 65536):
            heard += len(data)
    assert heard == 60_000
    theirs.close()


async def test_of_work_that_fails_or_stands_still_nothing_goes_on() -> None:
    ended: list[str] = []

    async def forever(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def failing() -> None:
        raise Cut("gone")

    with pytest.raises(Cut, match="gone"):
        await together(Stillness(60), forever("a"), failing())
    with pytest.raises(Cut, match="nothing has moved"):
        await together(Stillness(0.05), forever("b"), forever("c"))
    assert sorted(ended) == ["a", "b", "c"]
