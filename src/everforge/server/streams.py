"""Answers without an end of their own: WebSockets and followed tapes. Counted for each account, and cut when their token is revoked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from everforge.accounts.identity import Identity
from everforge.accounts.service import Accounts
from everforge.wire.errors import TooManyStreams
from everforge.wire.ids import AccountId

T = TypeVar("T")


class Revoked(Exception):
    """The stream must end: its token is no longer good, or the server stops."""


class Cut(Exception):
    """An answer that was begun will not be finished: its connection is closed, so that nobody takes it for whole."""


class Streams:
    def __init__(self, accounts: Accounts, per_account_max: int) -> None:
        self._accounts = accounts
        self._per_account_max = per_account_max
        self._open: Counter[AccountId] = Counter()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """All of them end; those that begin now end at once."""
        self._stopping.set()

    @property
    def count(self) -> int:
        return self._open.total()

    def check_room(self, identity: Identity) -> None:
        """Raises TooManyStreams. Asked before the first byte of an answer."""
        if self._open.get(identity.account, 0) >= self._per_account_max:
            raise TooManyStreams(f"this account has {self._per_account_max} streams open already; close some, or try again later")

    @contextmanager
    def counted(self, identity: Identity) -> Generator[None]:
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

    async def until_revoked(self, identity: Identity, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """The items of a transfer, which has an end of its own and is not counted; Revoked is raised when the token is."""
        end = asyncio.ensure_future(self._accounts.watch(identity).wait())
        async with aclosing(items):
            try:
                while (item := await _first(anext(items, None), [end])) is not None:
                    yield item
            finally:
                end.cancel()

    def guarded(self, identity: Identity, items: AsyncIterator[T]) -> AsyncGenerator[T]:
        """The items, until there are no more; Revoked is raised when the token is, or the server stops. Raises TooManyStreams at once."""
        self.check_room(identity)
        return self._guarded(identity, items)

    async def _guarded(self, identity: Identity, items: AsyncIterator[T]) -> AsyncGenerator[T]:
        with self.counted(identity):
            ends = [asyncio.ensure_future(event.wait()) for event in (self._accounts.watch(identity), self._stopping)]
            try:
                while (item := await _first(anext(items, None), ends)) is not None:
                    yield item
            finally:
                for end in ends:
                    end.cancel()


async def _first(wanted: Awaitable[T], ends: Sequence[asyncio.Future[Any]]) -> T:
    task = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait([task, *ends], return_when=asyncio.FIRST_COMPLETED)
        if any(end.done() for end in ends):  # also when there is always a next item
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
