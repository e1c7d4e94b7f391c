"""Waiting for work in threads, which goes on when whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Awaitable[T]) -> T:
    """When cancelled it first comes to its end, since its threads would."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody asks for it any more
        raise


async def all_of(executor: Executor, works: Sequence[Callable[[], T]]) -> list[T]:
    """Beside each other. All have ended when this returns or raises, so that nobody still reads what is then removed."""
    loop = asyncio.get_running_loop()
    results = await asyncio.gather(*(loop.run_in_executor(executor, work) for work in works), return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
