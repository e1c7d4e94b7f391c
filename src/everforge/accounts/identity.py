"""Who is asking: what a good token stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from everforge.wire.api import Scope
from everforge.wire.errors import Forbidden
from everforge.wire.ids import OWNER, AccountId, TokenId

SCOPES: frozenset[str] = frozenset(get_args(Scope))


@dataclass(frozen=True, slots=True)
class Identity:
    account: AccountId
    account_name: str
    token_id: TokenId
    token_name: str | None
    scopes: frozenset[str]
    expires_at: float | None = None  # of the token

    @property
    def is_owner(self) -> bool:
        return self.account == OWNER

    def require(self, scope: Scope) -> None:
        """Raises Forbidden."""
        if scope not in self.scopes:
            raise Forbidden(f"this token may {_words(self.scopes)}, and this needs {scope}: take a token with that scope", scope=scope)

    def require_owner(self) -> None:
        """Raises Forbidden."""
        if not self.is_owner:
            raise Forbidden("only the owner of the server may do this")


def _words(scopes: frozenset[str]) -> str:
    return " and ".join(sorted(scopes)) or "nothing"
