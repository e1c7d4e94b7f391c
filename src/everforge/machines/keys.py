"""Requests that come again: the same key and the same request get the same answer, and make nothing twice. Instructions have theirs on the tape."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence

from everforge.store.base import KeyRecord, MachineRecord, Store
from everforge.wire.errors import KeyReused, MachineNotFound
from everforge.wire.ids import AccountId, MachineId

from .locks import Locks

KEPT_SECONDS = 24 * 3600.0  # a client that tries again later than that has forgotten why
PRUNE_SECONDS = 3600.0

Key = Callable[[Sequence[MachineId]], KeyRecord | None]  # what to write beside the machines that were made
Make = Callable[[Key], Awaitable[Sequence[MachineRecord]]]


class RequestKeys:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """A clock that somebody sets must not make it forget: see clocks.py."""
        self._store = store
        self._clock = clock
        self._locks = Locks()
        self._pruned_at = 0.0

    async def once(self, account: AccountId, route: str, key: str | None, request: object, make: Make) -> tuple[Sequence[MachineRecord], bool]:
        """What was made, now or by an earlier request, and whether it was now. Raises KeyReused, and whatever `make` does."""
        if key is None:
            return await make(lambda _: None), True
        request_hash = hashlib.sha256(json.dumps(request, sort_keys=True, default=repr).encode()).hexdigest()
        async with self._locks.of(f"{account} {route} {key}"):
            before = await self._store.made_with_key(account, route, key)
            if before is not None:
                return await self._again(before, request_hash), False
            await self._prune()
            now = self._clock()
            return await make(
                lambda made: KeyRecord(account=account, route=route, key=key, request=request_hash, made=made, created_at=now),
            ), True

    async def _again(self, before: KeyRecord, request_hash: str) -> Sequence[MachineRecord]:
        if before.request != request_hash:
            raise KeyReused(f"the idempotency key {before.key!r} was used for another request; take a new one")
        found = [await self._store.machine(id) for id in before.made]
        made = [record for record in found if record is not None]
        if len(made) < len(found):
            raise MachineNotFound(f"what was made with the idempotency key {before.key!r} has been deleted meanwhile")
        return made

    async def _prune(self) -> None:
        now = self._clock()
        if now >= self._pruned_at + PRUNE_SECONDS:
            self._pruned_at = now
            await self._store.prune_keys(now - KEPT_SECONDS)
