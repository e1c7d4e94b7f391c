"""What happens that somebody may want to hear of. Machines, egress and the server tell it here; who listens is none of their business."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

EARLY_MAX = 1_000  # kept for a listener that is not there yet: a server tells of its recovery before its doors are open


@dataclass(frozen=True, slots=True)
class Signal:
    kind: str  # machine.created, machine.woken, machine.slept, machine.broken, machine.deleted, limit.hit, egress.attempt, auth.failure
    account: str | None = None  # id
    machine: str | None = None  # name
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


Listener = Callable[[Signal], Awaitable[None] | None]  # what it still does about it, if that takes time


class Signals:
    """To tell costs next to nothing, and never fails or waits."""

    def __init__(self, listener: Listener | None = None) -> None:
        self._listener = listener
        self._under_way: Awaitable[None] | None = None
        self._early: deque[Signal] = deque(maxlen=EARLY_MAX)

    def listen(self, listener: Listener) -> None:
        """From now on, and to what was told before."""
        self._listener = listener
        while self._early:
            listener(self._early.popleft())

    def tell(self, kind: str, *, account: str | None = None, machine: str | None = None, **detail: Any) -> None:
        signal = Signal(kind, account, machine, detail)
        if self._listener is None:
            self._early.append(signal)
        else:
            self._under_way = self._listener(signal)

    async def settled(self) -> None:
        """Before the store is closed: what was heard last may still be on its way into it."""
        if self._under_way is not None:
            await self._under_way
