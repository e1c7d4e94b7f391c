"""Connections to the Everforge server, one set for each token that comes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from everforge import AsyncEverforge
from everforge.client.config import Access
from everforge.wire.errors import TooMany

from .limits import CALLS_MAX, CLIENTS_MAX, RETRY_SECONDS
from .reach import Reach


@dataclass
class Held:
    client: AsyncEverforge
    reach: Reach
    calls: int = 0


class Clients:
    """Those that were not used for longest are closed when there are too many. One that is in use is not."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], Held] = OrderedDict()

    @asynccontextmanager
    async def of(self, access: Access) -> AsyncGenerator[Held]:
        held = await self._hold(access)
        if held.calls >= CALLS_MAX:
            raise TooMany(f"{CALLS_MAX} calls of this account are running already: wait until one has ended, or interrupt one")
        held.calls += 1
        try:
            yield held
        finally:
            held.calls -= 1

    async def _hold(self, access: Access) -> Held:
        key = (access.base_url, access.token)
        if key not in self._held:
            await self._make_room()
            reach = Reach()
            client = AsyncEverforge(access.token, access.base_url, retry_seconds=RETRY_SECONDS, on_connection=reach.tell)
            self._held.setdefault(key, Held(client, reach))
        self._held.move_to_end(key)
        return self._held[key]

    async def _make_room(self) -> None:
        if len(self._held) < CLIENTS_MAX:
            return
        unused = next((key for key, held in self._held.items() if not held.calls), None)
        if unused is None:
            raise TooMany(f"{CLIENTS_MAX} accounts are at work here already: try again in a moment")
        await self._held.pop(unused).client.close()

    async def close(self) -> None:
        while self._held:
            _, held = self._held.popitem()
            await held.client.close()
