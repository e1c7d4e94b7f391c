"""Who is asking: what a good token stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    tags: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)  # it is for machines that have all of them, and for nothing else

    @property
    def is_owner(self) -> bool:
        return self.account == OWNER

    def require(self, scope: Scope) -> None:
        """Raises Forbidden."""
        if scope not in self.scopes:
            raise Forbidden(f"this token may {_words(self.scopes)}, and this needs {scope}: take a token with that scope", scope=scope)

    def require_everything(self) -> None:
        """Raises Forbidden."""
        if self.tags:
            raise Forbidden(f"this token is for machines with {_pairs(self.tags)} alone; take one that is for the whole account")

    def require_owner(self) -> None:
        """Raises Forbidden."""
        if not self.is_owner:
            raise Forbidden("only the owner of the server may do this")


def _pairs(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(tags.items()))


def _words(scopes: frozenset[str]) -> str:
    return " and ".join(sorted(scopes)) or "nothing"
