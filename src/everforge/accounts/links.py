"""One-time log-in links: whoever opens one first has a token of their own. Kept in memory; a server that stops forgets them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass

from everforge.wire.errors import LinkInvalid, TooMany
from everforge.wire.ids import TokenId

from .identity import Identity

CODE_BYTES = 24
LINK_SECONDS = 15 * 60.0
LINKS_MAX = 1_000  # open at once, of all accounts
OF_ACCOUNT_MAX = 20  # and of one: it must not use up those of the others


@dataclass(frozen=True, slots=True)
class Link:
    code: str
    expires_at: float


def invalid() -> LinkInvalid:
    """In the same words whatever is wrong with it."""
    return LinkInvalid("this log-in link was used already, or is good no longer; ask for another with `everforge token link`")


class Links:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[str, tuple[Identity, float]] = {}

    def new(self, identity: Identity) -> Link:
        """For the account of whoever asks, and with its rights."""
        self._forget_old()
        of_account = sum(found.account == identity.account for found, _ in self._open.values())
        if len(self._open) >= LINKS_MAX or of_account >= OF_ACCOUNT_MAX:
            raise TooMany("there are too many log-in links that nobody has opened yet; they expire by themselves")
        code, expires_at = secrets.token_urlsafe(CODE_BYTES), self._clock() + LINK_SECONDS
        self._open[code] = (identity, expires_at)
        return Link(code, expires_at)

    def redeem(self, code: str) -> Identity:
        """Once."""
        self._forget_old()
        found = self._open.pop(code, None)
        if found is None:
            raise invalid()
        return found[0]

    def drop(self, ids: Collection[TokenId]) -> None:
        """Those that these tokens have made: they are good no longer, and neither are their links."""
        self._open = {code: found for code, found in self._open.items() if found[0].token_id not in ids}

    def _forget_old(self) -> None:
        now = self._clock()
        self._open = {code: found for code, found in self._open.items() if found[1] > now}
