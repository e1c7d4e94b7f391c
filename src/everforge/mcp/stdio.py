"""The protocol over standard input and output: a message a line, both ways.

Unlike the SDK's own transport it answers what is no message with an error of the protocol, takes no line that is too long, and ends at once
when it is told to: a thread that waits for a line would hold the process back, so the threads here are nobody's to wait for.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, JSONRPCError
from pydantic import BaseModel

from .callers import Local
from .calls import Link, Settings
from .limits import MESSAGE_BYTES_MAX
from .messages import Lines, encoded, error, parse
from .server import Offer, make_server

CHUNK_BYTES = 64 * 1024
LINES_MAX = 32  # that wait to be taken; then no more are read
TOO_LONG = f"this message has more than {MESSAGE_BYTES_MAX} bytes, and was not read: send large files with several calls"

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


async def serve(settings: Settings) -> None:
    """Until the client closes our input, or somebody stops us."""
    link = Link()
    server = make_server(Offer(Local(settings), settings, link))
    source, target = _claim()
    with anyio.CancelScope() as scope:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, _stop, link, scope)
        async with transport(source, target, link) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def _stop(link: Link, scope: anyio.CancelScope) -> None:
    link.closed = True
    scope.cancel()


def _claim() -> tuple[int, int]:
    """The protocol's descriptors, for nobody but us: what anything else prints goes to stderr, and would break the protocol here."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, target


@asynccontextmanager
async def transport(source: int, target: int, link: Link) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Streams of messages, as the SDK wants them, over two descriptors."""
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out = anyio.create_memory_object_stream[SessionMessage](0)
    writer = Writer(target)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pump_in, source, into, writer, link)
        tasks.start_soon(_pump_out, out, writer, link, tasks.cancel_scope)
        yield incoming, outgoing
        tasks.cancel_scope.cancel()


async def _pump_in(source: int, into: MemoryObjectSendStream[SessionMessage | Exception], writer: Writer, link: Link) -> None:
    async with into:
        lines = read_lines(source)
        while (line := await lines.get()) is not EOF:
            lines.taken()
            if isinstance(line, bytes) and not line.strip():
                continue
            message = parse(line) if isinstance(line, bytes) else error(INVALID_REQUEST, TOO_LONG)
            try:
                await (writer.write(message) if isinstance(message, JSONRPCError) else into.send(message))
            except (OSError, anyio.BrokenResourceError):
                break  # nobody listens any more
        link.closed = True  # before the calls that still run hear of it


async def _pump_out(out: MemoryObjectReceiveStream[SessionMessage], writer: Writer, link: Link, scope: anyio.CancelScope) -> None:
    async with out:
        async for sent in out:
            try:
                await writer.write(sent.message)
            except OSError:
                link.closed = True
                scope.cancel()  # nobody reads: there is no more to do
                return


class _End:
    """Behind the last line."""


EOF = _End()
Found = bytes | None | _End


class LineQueue:
    """From the thread that reads to the loop that takes; no more than a few lines ahead."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._found: asyncio.Queue[Found] = asyncio.Queue()
        self._room = threading.Semaphore(LINES_MAX)

    async def get(self) -> Found:
        return await self._found.get()

    def taken(self) -> None:
        self._room.release()

    def put(self, line: Found) -> None:
        self._room.acquire()
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._found.put_nowait, line)


def read_lines(source: int) -> LineQueue:
    found, lines = LineQueue(), Lines(MESSAGE_BYTES_MAX)

    def read() -> None:
        with suppress(OSError):
            while chunk := os.read(source, CHUNK_BYTES):
                for line in lines.take(chunk):
                    found.put(line)
        found.put(EOF)

    threading.Thread(target=read, daemon=True, name="mcp-in").start()
    return found


class Writer:
    """One message after the other, from a thread of its own: a client that does not read stops nothing but what is meant for it."""

    def __init__(self, target: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._target = target
        threading.Thread(target=self._work, daemon=True, name="mcp-out").start()

    async def write(self, message: BaseModel) -> None:
        """OSError when nobody reads any more."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((encoded(message), done))
        await done

    def _work(self) -> None:
        while True:
            line, done = self._jobs.get()
            try:
                while line:
                    line = line[os.write(self._target, line) :]
                self._tell(done, None)
            except OSError as e:
                self._tell(done, e)

    def _tell(self, done: asyncio.Future[None], failure: OSError | None) -> None:
        def tell() -> None:
            if not done.done():
                done.set_result(None) if failure is None else done.set_exception(failure)

        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(tell)
