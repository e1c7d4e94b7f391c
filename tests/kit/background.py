"""A server on a thread and a loop of its own, for tests and tools that are not asynchronous."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from everforge.server import loop

from .service import Running, service

START_SECONDS = 30.0


@contextmanager
def in_background(**options: Any) -> Generator[Running]:
    """`options` are those of `service`. Only what may be used from another thread is to be used of it: its address and its token."""
    started: queue.Queue[tuple[Running, asyncio.AbstractEventLoop, asyncio.Event] | BaseException] = queue.Queue()

    async def run() -> None:
        stop = asyncio.Event()
        try:
            async with service(**options) as running:
                started.put((running, asyncio.get_running_loop(), stop))
                await stop.wait()
        except BaseException as e:
            started.put(e)
            raise

    thread = threading.Thread(target=lambda: loop.run(run()), daemon=True)
    thread.start()
    found = started.get(timeout=START_SECONDS)
    if isinstance(found, BaseException):
        raise found
    running, its_loop, stop = found
    try:
        yield running
    finally:
        its_loop.call_soon_threadsafe(stop.set)
        thread.join(START_SECONDS)
        assert not thread.is_alive()
