"""What every account book does. Subclass it and give it a `store` fixture."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from everforge.store.accounts import AccountRecord, InvitationRecord, TokenRecord
from everforge.store.base import Change, Store
from everforge.wire.errors import (
    AccountNameAlreadyExists,
    AccountNotFound,
    EmailAlreadyExists,
    InvitationInvalid,
    TokenNotFound,
    TooMany,
    WrongState,
)
from everforge.wire.ids import TokenId, new_account_id, new_invitation_id, new_token_id

from .store_suite import machine


def account(name: str, email: str | None = None) -> AccountRecord:
    return AccountRecord(id=new_account_id(), name=name, email=email, created_at=1.0)


def token(of: AccountRecord, **values: Any) -> TokenRecord:
    defaults: dict[str, Any] = {"id": new_token_id(), "account": of.id, "hash": "h", "created_at": 1.0, "scopes": frozenset({"read", "exec"})}
    return TokenRecord(**(defaults | values))


def invitation(**values: Any) -> InvitationRecord:
    defaults: dict[str, Any] = {"id": new_invitation_id(), "hash": "h", "created_at": 1.0, "expires_at": 9.0}
    return InvitationRecord(**(defaults | values))


class AccountSuite:
    async def test_an_account_comes_back_as_it_was_and_is_found_in_any_spelling(self, store: Store) -> None:
        ann = account("Ann-1", "Ann@Example.org")
        await store.accounts.add_account(ann)
        book = store.accounts
        found = [await book.account(ann.id), await book.account_named("ann-1"), await book.account_with_email("ANN@example.ORG")]
        assert found == [ann, ann, ann]
        assert await book.account(new_account_id()) is None
        assert await book.account_named("bob") is None

    async def test_names_and_addresses_are_unique_in_any_spelling_and_nothing_is_half_done(self, store: Store) -> None:
        await store.accounts.add_account(account("ann", "a@example.org"))
        invited = invitation()
        await store.accounts.add_invitation(invited, 10)
        for taken, error in ((account("ANN"), AccountNameAlreadyExists), (account("bob", "A@EXAMPLE.org"), EmailAlreadyExists)):
            first = token(taken)
            with pytest.raises(error):
                await store.accounts.add_account(taken, first, invited.id)
            assert await store.accounts.token(first.id) is None
        assert await store.accounts.invitation(invited.id) == invited
        await store.accounts.add_account(account("bob"))  # any number of accounts without an address
        await store.accounts.add_account(account("eve"))

    async def test_accounts_are_listed_by_name_in_pages(self, store: Store) -> None:
        for name in ("bob", "Ann", "eve"):
            await store.accounts.add_account(account(name))
        assert [a.name for a in await store.accounts.accounts("", 2)] == ["Ann", "bob"]
        assert [a.name for a in await store.accounts.accounts("bob", 2)] == ["eve"]

    async def test_a_token_is_found_with_its_account_until_it_is_pruned(self, store: Store) -> None:
        ann = account("ann")
        await store.accounts.add_account(ann)
        first = token(ann, name="first", expires_at=5.0)
        await store.accounts.add_token(first, 10)
        assert await store.accounts.token(first.id) == (first, ann)
        assert await store.accounts.token(new_token_id()) is None
        await store.accounts.note_used({first.id: 3.0, TokenId("nobody"): 3.0})
        assert await store.accounts.tokens(ann.id) == [replace(first, last_used_at=3.0)]
        await store.accounts.prune(5.0)
        assert await store.accounts.token(first.id) is not None
        await store.accounts.prune(6.0)
        assert await store.accounts.token(first.id) is None

    async def test_a_token_is_revoked_once_and_by_its_own_account(self, store: Store) -> None:
        ann, bob = account("ann"), account("bob")
        mine = token(ann)
        await store.accounts.add_account(ann, mine)
        await store.accounts.add_account(bob)
        with pytest.raises(TokenNotFound):
            await store.accounts.revoke_token(bob.id, mine.id, 2.0)
        await store.accounts.revoke_token(ann.id, mine.id, 2.0)
        with pytest.raises(TokenNotFound):
            await store.accounts.revoke_token(ann.id, mine.id, 3.0)
        assert await store.accounts.token(mine.id) == (replace(mine, revoked_at=2.0), ann)
        assert await store.accounts.tokens(ann.id) == []
        await store.accounts.prune(3.0)
        assert await store.accounts.token(mine.id) is None

    async def test_only_tokens_that_live_count_against_the_limit(self, store: Store) -> None:
        ann = account("ann")
        revoked, expired = token(ann), token(ann, expires_at=5.0)
        await store.accounts.add_account(ann, revoked)
        await store.accounts.revoke_token(ann.id, revoked.id, 2.0)
        await store.accounts.add_token(expired, 1)
        with pytest.raises(TooMany):
            await store.accounts.add_token(token(ann, created_at=4.0), 1)
        await store.accounts.add_token(token(ann, created_at=6.0), 1)
        with pytest.raises(AccountNotFound):
            await store.accounts.add_token(token(account("nobody")), 1)

    async def test_a_revoked_token_keeps_its_tags_no_longer(self, store: Store) -> None:
        ann = account("ann")
        mine = token(ann, tags={"team": "red"})
        await store.accounts.add_account(ann, mine)
        await store.accounts.revoke_token(ann.id, mine.id, 2.0)
        assert await store.accounts.token(mine.id) == (replace(mine, revoked_at=2.0, tags={}), ann)

    @pytest.mark.parametrize("way", ["revoked", "expired"])
    async def test_of_tokens_that_are_good_no_longer_an_account_keeps_as_many_as_it_may_have_of_others(self, store: Store, way: str) -> None:
        ann, bob = account("ann"), account("bob")
        others = token(bob, expires_at=0.5)
        await store.accounts.add_account(bob, others)
        await store.accounts.add_account(ann)
        made: list[TokenRecord] = []
        for n in range(10):
            now = 10.0 + n
            made.append(token(ann, created_at=now, expires_at=now + 0.5 if way == "expired" else None))
            await store.accounts.add_token(made[-1], 3)
            if way == "revoked":
                await store.accounts.revoke_token(ann.id, made[-1].id, now + 0.5)
        await store.accounts.add_token(token(ann, created_at=30.0), 3)
        assert [n for n, one in enumerate(made) if await store.accounts.token(one.id)] == [7, 8, 9]  # the newest
        assert await store.accounts.token(others.id) is not None

    async def test_a_deleted_account_is_gone_with_its_tokens_and_its_name_is_free(self, store: Store) -> None:
        ann = account("ann", "a@example.org")
        mine = token(ann)
        await store.accounts.add_account(ann, mine)
        owned = machine(account=ann.id)
        await store.create(owned)
        with pytest.raises(WrongState):
            await store.accounts.delete_account(ann.id, 2.0)
        await store.commit(Change(machine=owned.id, set={"deleted_at": 2.0, "residence": "deleted"}))
        assert await store.accounts.delete_account(ann.id, 3.0) == [mine.id]
        assert [await store.accounts.account(ann.id), await store.accounts.token(mine.id)] == [None, None]
        for call in (store.accounts.delete_account(ann.id, 4.0), store.create(machine(account=ann.id))):
            with pytest.raises(AccountNotFound):
                await call
        await store.accounts.add_account(account("ann", "a@example.org"))

    async def test_an_invitation_is_used_once_however_many_try_at_once(self, store: Store) -> None:
        invited = invitation(email="a@example.org")
        await store.accounts.add_invitation(invited, 1)
        with pytest.raises(TooMany):
            await store.accounts.add_invitation(invitation(), 1)
        tries = [store.accounts.add_account(account(f"name{n}"), None, invited.id) for n in range(5)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        assert sorted(type(r).__name__ for r in results) == [InvitationInvalid.__name__] * 4 + ["NoneType"]
        assert len(await store.accounts.accounts("", 10)) == 1
        assert await store.accounts.invitation(invited.id) == replace(invited, used_at=1.0)
        await store.accounts.prune(2.0)
        assert await store.accounts.invitation(invited.id) is None
