"""The synchronous client behind the asynchronous one's interface, so that one test tries both: calls go to a thread of their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import everforge
from everforge.client._async import channel, client, files, instruction, machine, repl, tape, tokens
from everforge.client._sync import client as synchronous

_DONE = object()
_TWINS = {
    name.removeprefix("Async"): cls
    for module in (channel, client, files, instruction, machine, repl, tape, tokens)
    for name, cls in vars(module).items()
    if name.startswith("Async") and inspect.isclass(cls)
}


class Threaded:
    """A synchronous object. What is a coroutine function of its twin is awaited here, too."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._twin = _TWINS[type(inner).__name__]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return _wrapped(found)
        if not inspect.iscoroutinefunction(getattr(self._twin, name)):
            return lambda *args, **kwargs: _wrapped(found(*args, **kwargs))  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]

        async def call(*args: Any, **kwargs: Any) -> Any:
            return _wrapped(await asyncio.to_thread(found, *args, **kwargs))

        return call

    async def __aenter__(self) -> Any:
        return _wrapped(await asyncio.to_thread(self._inner.__enter__))

    async def __aexit__(self, *error: Any) -> None:
        await asyncio.to_thread(self._inner.__exit__, *error)


def _wrapped(found: Any) -> Any:
    if isinstance(found, list):
        return [_wrapped(one) for one in cast(list[Any], found)]
    if isinstance(found, Iterator):
        return _steps(cast(Iterator[Any], found))
    return Threaded(found) if type(found).__module__.startswith("everforge.client._sync") else found


async def _steps(items: Iterator[Any]) -> AsyncGenerator[Any]:
    try:
        while (item := await asyncio.to_thread(next, items, _DONE)) is not _DONE:
            yield item
    finally:
        await asyncio.to_thread(cast(Any, items).close)


KINDS = ("async", "sync")


@asynccontextmanager
async def connected(kind: str, url: str, token: str, **options: Any) -> AsyncGenerator[everforge.AsyncEverforge]:
    """A client of either kind, to be used as the asynchronous one."""
    made: Any = everforge.AsyncEverforge(token, url, **options) if kind == "async" else Threaded(synchronous.Everforge(token, url, **options))
    async with made:
        yield made
