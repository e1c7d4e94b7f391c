"""Looking up names, as this computer's own programs do. A name server that does not answer must keep nobody waiting but who asked for its names."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

from everforge.wire.ids import AccountId

THREADS = 256  # a look-up cannot be ended: its thread waits for as long as the system's resolver does
OF_MACHINE_MAX = 4  # at once
OF_ACCOUNT_MAX = 32

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
_THREADS = ThreadPoolExecutor(THREADS, thread_name_prefix="names")


async def look_up(host: str, port: int) -> Sequence[str]:
    """Its addresses. Raises OSError, UnicodeError."""
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Asker:
    """A Lookup with so many under way at once and no more, those counted that nobody waits for any longer. It lives as long as one of them does."""

    def __init__(self, lookup: Lookup, at_once: int) -> None:
        self._lookup = lookup
        self._turns = asyncio.Semaphore(at_once)
        self._under_way: set[asyncio.Future[Sequence[str]]] = set()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        await self._turns.acquire()
        looking = asyncio.ensure_future(self._lookup(host, port))
        self._under_way.add(looking)
        looking.add_done_callback(self._over)
        return await asyncio.shield(looking)

    def _over(self, looking: asyncio.Future[Sequence[str]]) -> None:
        self._under_way.discard(looking)
        self._turns.release()
        if not looking.cancelled():
            looking.exception()  # heard: whoever asked may have gone


class Askers:
    """Of accounts, each with so many under way: also of what its machines asked before they slept, or its webhooks before they gave up."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._accounts: WeakValueDictionary[AccountId, Asker] = WeakValueDictionary()

    def of_account(self, account: AccountId) -> Asker:
        found = self._accounts.get(account)
        if found is None:
            found = self._accounts[account] = Asker(self._lookup, OF_ACCOUNT_MAX)
        return found

    def of_machine(self, account: AccountId) -> Asker:
        """A new one, within what its account may have."""
        return Asker(self.of_account(account), OF_MACHINE_MAX)
