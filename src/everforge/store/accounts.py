"""Who may use a server: accounts, their tokens, invitations. The seam to whatever remembers them; secrets come here only as hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everforge.wire.ids import AccountId, InvitationId, TokenId

from .quotas import QuotaRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    id: AccountId
    name: str  # as its owner spells it; two that differ only in case are the same
    created_at: float
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    id: TokenId
    account: AccountId
    hash: str
    created_at: float
    scopes: frozenset[str]
    name: str | None = None
    last_used_at: float | None = None  # written now and then
    expires_at: float | None = None
    revoked_at: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])  # only for machines that have all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationRecord:
    id: InvitationId
    hash: str
    created_at: float
    expires_at: float
    email: str | None = None  # if set, only for this address
    used_at: float | None = None


class AccountBook(Protocol):
    async def add_account(self, account: AccountRecord, token: TokenRecord | None = None, invitation: InvitationId | None = None) -> None:
        """With its first token, and the invitation that it uses up: together and durably, or not at all.

        Raises AccountNameAlreadyExists, EmailAlreadyExists, InvitationInvalid (used meanwhile).
        """
        ...

    async def account(self, id: AccountId) -> AccountRecord | None: ...

    async def account_named(self, name: str) -> AccountRecord | None:
        """In any spelling."""
        ...

    async def account_with_email(self, email: str) -> AccountRecord | None:
        """In any spelling."""
        ...

    async def accounts(self, after: str, limit: int) -> Sequence[AccountRecord]:
        """By name; `after` is the name of the last one seen, or empty."""
        ...

    async def delete_account(self, id: AccountId, at: float) -> Sequence[TokenId]:
        """Its tokens are revoked with it, and returned. Raises AccountNotFound; WrongState while it has machines."""
        ...

    async def quota(self, account: AccountId) -> QuotaRecord:
        """What was set for it; nothing, if nothing was."""
        ...

    async def quotas(self) -> Mapping[AccountId, QuotaRecord]:
        """Of all accounts for which something was set."""
        ...

    async def change_quota(self, account: AccountId, values: Mapping[str, Any]) -> QuotaRecord:
        """These fields of it, durably; the others stay, and no other change comes in between. As it is then. Raises AccountNotFound."""
        ...

    async def add_token(self, token: TokenRecord, at_most: int) -> None:
        """Durably. Of those that are revoked or expired as many stay, the newest. Raises AccountNotFound; TooMany if the account would have more
        that are neither."""
        ...

    async def token(self, id: TokenId) -> tuple[TokenRecord, AccountRecord] | None:
        """With the account that it is of. Also one that is revoked or expired, until newer ones take its place or it is pruned."""
        ...

    async def tokens(self, account: AccountId) -> Sequence[TokenRecord]:
        """Oldest first, those that were revoked aside."""
        ...

    async def revoke_token(self, account: AccountId, id: TokenId, at: float) -> None:
        """Durably; its tags go, which may be large. Raises TokenNotFound if the account has none of that id that is not revoked."""
        ...

    async def note_used(self, used: Mapping[TokenId, float]) -> None:
        """When tokens were last used. Unknown ones are passed over."""
        ...

    async def add_invitation(self, invitation: InvitationRecord, at_most: int) -> None:
        """Durably. Raises TooMany if there would be more that are neither used nor expired."""
        ...

    async def invitation(self, id: InvitationId) -> InvitationRecord | None: ...

    async def prune(self, before: float) -> None:
        """Forget tokens and invitations that were revoked, used or expired before that time."""
        ...


def same(text: str) -> str:
    """Two names, or two addresses, that give the same here are the same."""
    return text.casefold()
