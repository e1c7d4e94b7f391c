"""The account book of a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from everforge.wire.errors import AccountNameAlreadyExists, AccountNotFound, EmailAlreadyExists, InvitationInvalid, TokenNotFound, TooMany, WrongState
from everforge.wire.ids import AccountId, InvitationId, TokenId

from .accounts import AccountRecord, InvitationRecord, TokenRecord, same
from .quotas import QuotaRecord


class MemoryAccounts:
    def __init__(self, has_machines: Callable[[AccountId], bool], forget: Callable[[AccountId], None] = lambda _: None) -> None:
        """`forget` is told of accounts that were deleted: what else they had goes with them."""
        self._has_machines = has_machines
        self._forget = forget
        self._accounts: dict[AccountId, AccountRecord] = {}
        self._deleted: set[AccountId] = set()
        self._quotas: dict[AccountId, QuotaRecord] = {}
        self._tokens: dict[TokenId, TokenRecord] = {}
        self._invitations: dict[InvitationId, InvitationRecord] = {}

    def is_deleted(self, account: AccountId) -> bool:
        return account in self._deleted

    async def add_account(self, account: AccountRecord, token: TokenRecord | None = None, invitation: InvitationId | None = None) -> None:
        if await self.account_named(account.name):
            raise AccountNameAlreadyExists("there is an account of that name already; take another name")
        if account.email is not None and await self.account_with_email(account.email):
            raise EmailAlreadyExists("there is an account with that address already")
        if invitation is not None:
            found = self._invitations.get(invitation)
            if found is None or found.used_at is not None:
                raise InvitationInvalid("the invitation was used already")
            self._invitations[invitation] = replace(found, used_at=account.created_at)
        self._accounts[account.id] = account
        if token is not None:
            self._tokens[token.id] = token

    async def account(self, id: AccountId) -> AccountRecord | None:
        return self._accounts.get(id)

    async def account_named(self, name: str) -> AccountRecord | None:
        return next((a for a in self._accounts.values() if same(a.name) == same(name)), None)

    async def account_with_email(self, email: str) -> AccountRecord | None:
        return next((a for a in self._accounts.values() if a.email is not None and same(a.email) == same(email)), None)

    async def accounts(self, after: str, limit: int) -> Sequence[AccountRecord]:
        return sorted((a for a in self._accounts.values() if same(a.name) > same(after)), key=lambda a: same(a.name))[:limit]

    async def delete_account(self, id: AccountId, at: float) -> Sequence[TokenId]:
        if id not in self._accounts:
            raise AccountNotFound("there is no such account")
        if self._has_machines(id):
            raise WrongState("the account has machines: delete them first")
        del self._accounts[id]
        self._quotas.pop(id, None)
        self._forget(id)
        self._deleted.add(id)
        revoked = [token.id for token in await self.tokens(id)]
        for token in revoked:
            self._tokens[token] = replace(self._tokens[token], revoked_at=at, tags={})
        return revoked

    async def quota(self, account: AccountId) -> QuotaRecord:
        return self._quotas.get(account, QuotaRecord())

    async def quotas(self) -> Mapping[AccountId, QuotaRecord]:
        return dict(self._quotas)

    async def change_quota(self, account: AccountId, values: Mapping[str, Any]) -> QuotaRecord:
        if account not in self._accounts:
            raise AccountNotFound("there is no such account")
        changed = self._quotas[account] = replace(self._quotas.get(account, QuotaRecord()), **values)
        return changed

    async def add_token(self, token: TokenRecord, at_most: int) -> None:
        if token.account not in self._accounts:
            raise AccountNotFound("there is no such account")
        living = [t for t in await self.tokens(token.account) if t.expires_at is None or t.expires_at > token.created_at]
        if len(living) >= at_most:
            raise TooMany(f"an account has {at_most} tokens at most; revoke one that is no longer used")
        self._tokens[token.id] = token
        over = sorted((ended, t.id) for t in self._tokens.values() if t.account == token.account and (ended := _ended(t, token.created_at)))
        for _, id in over[: max(0, len(over) - at_most)]:
            del self._tokens[id]

    async def token(self, id: TokenId) -> tuple[TokenRecord, AccountRecord] | None:
        token = self._tokens.get(id)
        account = self._accounts.get(token.account) if token else None
        return None if token is None or account is None else (token, account)

    async def tokens(self, account: AccountId) -> Sequence[TokenRecord]:
        found = [t for t in self._tokens.values() if t.account == account and t.revoked_at is None]
        return sorted(found, key=lambda t: (t.created_at, t.id))

    async def revoke_token(self, account: AccountId, id: TokenId, at: float) -> None:
        token = self._tokens.get(id)
        if token is None or token.account != account or token.revoked_at is not None:
            raise TokenNotFound("there is no such token")
        self._tokens[id] = replace(token, revoked_at=at, tags={})

    async def note_used(self, used: Mapping[TokenId, float]) -> None:
        for id, at in used.items():
            if token := self._tokens.get(id):
                self._tokens[id] = replace(token, last_used_at=at)

    async def add_invitation(self, invitation: InvitationRecord, at_most: int) -> None:
        living = [i for i in self._invitations.values() if i.used_at is None and i.expires_at > invitation.created_at]
        if len(living) >= at_most:
            raise TooMany(f"there are {at_most} open invitations, which is the limit; wait until some are used or expire")
        self._invitations[invitation.id] = invitation

    async def invitation(self, id: InvitationId) -> InvitationRecord | None:
        return self._invitations.get(id)

    async def prune(self, before: float) -> None:
        self._tokens = {id: t for id, t in self._tokens.items() if not _over(t.revoked_at, before) and not _over(t.expires_at, before)}
        self._invitations = {id: i for id, i in self._invitations.items() if not _over(i.used_at, before) and not _over(i.expires_at, before)}


def _ended(token: TokenRecord, now: float) -> float | None:
    if token.revoked_at is not None:
        return token.revoked_at
    return token.expires_at if token.expires_at is not None and token.expires_at <= now else None


def _over(time: float | None, before: float) -> bool:
    return time is not None and time < before
