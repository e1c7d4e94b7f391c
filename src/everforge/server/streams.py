"""Answers without an end of their own: WebSockets and followed tapes. Counted for each account, and cut when their token is revoked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from everforge.accounts.identity import Identity
from everforge.accounts.service import Accounts
from everforge.wire.errors import TooManyStreams
from everforge.wire.ids import AccountId

T = TypeVar("T")


class Revoked(Exception):
    """The token of a stream is no longer good."""


class Streams:
    def __init__(self, accounts: Accounts, per_account_max: int) -> None:
        self._accounts = accounts
        self._per_account_max = per_account_max
        self._open: Counter[AccountId] = Counter()

    @property
    def count(self) -> int:
        return self._open.total()

    @contextmanager
    def counted(self, identity: Identity) -> Generator[None]:
        if self._open[identity.account] >= self._per_account_max:
            raise TooManyStreams(f"this account has {self._per_account_max} streams open already; close some, or try again later")
        self._open[identity.account] += 1
        try:
            yield
        finally:
            self._open[identity.account] -= 1
            if not self._open[identity.account]:
                del self._open[identity.account]

    @asynccontextmanager
    async def while_valid(self, identity: Identity, cut: Callable[[], None]) -> AsyncGenerator[None]:
        """`cut` is called when the token is revoked."""
        with self.counted(identity):
            watch = asyncio.ensure_future(self._accounts.watch(identity).wait())
            watch.add_done_callback(lambda done: None if done.cancelled() else cut())
            try:
                yield
            finally:
                watch.cancel()

    async def guarded(self, identity: Identity, items: AsyncIterator[T]) -> AsyncGenerator[T]:
        """The items, until there are no more or the token is revoked: then Revoked is raised."""
        with self.counted(identity):
            revoked = asyncio.ensure_future(self._accounts.watch(identity).wait())
            try:
                while True:
                    item = await _first(anext(items, None), revoked)
                    if item is None:
                        return
                    yield item
            finally:
                revoked.cancel()


async def _first(wanted: Awaitable[T], revoked: asyncio.Future[Any]) -> T:
    task = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait([task, revoked], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Revoked
        return task.result()
    finally:
        await _stopped(task)


async def _stopped(task: asyncio.Future[Any]) -> None:
    """However often whoever waits is cancelled meanwhile: a generator must stand still before it can be closed."""
    task.cancel()
    while not task.done():
        with suppress(asyncio.CancelledError):  # the first one is on its way up already
            await asyncio.wait([task])


async def with_signs_of_life(items: AsyncGenerator[bytes], sign: bytes, quiet_seconds: float) -> AsyncGenerator[bytes]:
    """`sign` whenever nothing has come for so long: proxies and clients take silence for death."""
    async with aclosing(items):
        while True:
            waiting = asyncio.ensure_future(anext(items, None))
            try:
                while not (await asyncio.wait([waiting], timeout=quiet_seconds))[0]:
                    yield sign
                item = waiting.result()
            finally:
                await _stopped(waiting)
            if item is None:
                return
            yield item
