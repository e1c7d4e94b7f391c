"""A wire between a client and a server that a test can cut, hold, or cut by itself after so many bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

CHUNK_BYTES = 4096


class Proxy:
    def __init__(self, target: str) -> None:
        self.target = target  # where the server is; may change while connections come and go
        self.url = ""
        self.connections = 0  # made so far
        self.refusing = False  # as if nobody listened: every connection is reset at once
        self.answer_bytes_left: Callable[[], int] | None = None  # of each new connection: after how many bytes of the answer it is cut
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """All connections, with a reset: what is under way is lost."""
        for writer in list(self._writers):
            writer.transport.abort()

    def hold(self) -> None:
        """Nothing gets through, and nobody is told."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        upstream: asyncio.StreamWriter | None = None
        try:
            if self.refusing:
                return
            host, _, port = self.target.removeprefix("http://").rpartition(":")
            back, upstream = await asyncio.open_connection(host, int(port))
            self._writers.add(upstream)
            budget = None if self.answer_bytes_left is None else self.answer_bytes_left()
            both = [asyncio.ensure_future(self._pump(reader, upstream, None)), asyncio.ensure_future(self._pump(back, writer, budget))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in both:
                task.cancel()
            await asyncio.wait(both)
        except OSError:
            pass
        finally:
            for end in (writer, upstream):
                if end is not None:
                    self._writers.discard(end)
                    end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int | None) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self._flowing.wait()
                if budget is not None:
                    chunk, budget = chunk[:budget], budget - len(chunk)
                writer.write(chunk)
                await writer.drain()
                if budget is not None and budget <= 0:
                    return
            await asyncio.sleep(0)


@asynccontextmanager
async def proxy(target: str) -> AsyncGenerator[Proxy]:
    made = Proxy(target)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(list(tasks))
