"""Tokens whose answer is known, so that a request with one costs no look into the store. Bounded, whoever comes with whatever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from everforge.wire.ids import TokenId

from .identity import Identity


@dataclass(slots=True)
class KnownTokens:
    size_max: int
    generation: int = 0  # raised when a token goes: what was read of the store before is not to be trusted
    _good: dict[bytes, Identity] = field(default_factory=dict[bytes, Identity])
    _prints: dict[TokenId, bytes] = field(default_factory=dict[TokenId, bytes])  # where each is in `_good`
    _bad: dict[bytes, None] = field(default_factory=dict[bytes, None])
    _used: dict[TokenId, float] = field(default_factory=dict[TokenId, float])  # since it was last written

    def use(self, fingerprint: bytes, now: float) -> Identity | None:
        identity = self._good.get(fingerprint)
        if identity is None:
            return None
        if identity.expires_at is not None and identity.expires_at <= now:
            self.add_bad(fingerprint)
            self.drop([identity.token_id])
            return None
        if len(self._used) < self.size_max:
            self._used[identity.token_id] = now
        return identity

    def is_bad(self, fingerprint: bytes) -> bool:
        return fingerprint in self._bad

    def add(self, fingerprint: bytes, identity: Identity) -> None:
        if len(self._good) >= self.size_max:
            oldest = next(iter(self._good))
            del self._prints[self._good.pop(oldest).token_id]
        self._good[fingerprint] = identity
        self._prints[identity.token_id] = fingerprint

    def add_bad(self, fingerprint: bytes) -> None:
        if len(self._bad) >= self.size_max:
            del self._bad[next(iter(self._bad))]
        self._bad[fingerprint] = None

    def drop(self, ids: Iterable[TokenId]) -> None:
        """They are good no longer."""
        self.generation += 1
        for id in ids:
            if fingerprint := self._prints.pop(id, None):
                del self._good[fingerprint]

    def take_used(self) -> dict[TokenId, float]:
        used, self._used = self._used, {}
        return used

    def __len__(self) -> int:
        return len(self._good) + len(self._bad)
