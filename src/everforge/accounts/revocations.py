"""Tells streams that the token they were opened with is good no longer: it was revoked, or it expired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from weakref import WeakValueDictionary

from everforge.wire.ids import TokenId

from .identity import Identity

REMEMBERED_MAX = 10_000  # revoked tokens: somebody may have been identified just before, and ask for an event just after
LOOK_SECONDS = 30.0  # a clock that was set is noticed so soon


class Revocations:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._events: WeakValueDictionary[TokenId, asyncio.Event] = WeakValueDictionary()  # an event lives as long as anybody waits for it
        self._revoked: dict[TokenId, None] = {}

    def watch(self, identity: Identity) -> asyncio.Event:
        """Set as soon as the token is good no longer. Keep it for as long as you want to know."""
        event = self._events.get(identity.token_id)
        if event is None:
            event = self._events[identity.token_id] = asyncio.Event()
            if identity.token_id in self._revoked:
                event.set()
            elif identity.expires_at is not None:
                self._look(identity.token_id, identity.expires_at)
        return event

    def tell(self, ids: Iterable[TokenId]) -> None:
        for id in ids:
            if len(self._revoked) >= REMEMBERED_MAX:
                del self._revoked[next(iter(self._revoked))]
            self._revoked[id] = None
            if event := self._events.get(id):
                event.set()

    def _look(self, id: TokenId, expires_at: float) -> None:
        event = self._events.get(id)
        if event is None or event.is_set():
            return
        left = expires_at - self._clock()
        if left <= 0:
            event.set()
        else:
            asyncio.get_running_loop().call_later(min(left, LOOK_SECONDS), self._look, id, expires_at)
