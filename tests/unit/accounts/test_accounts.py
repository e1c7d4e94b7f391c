from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everforge.accounts.identity import SCOPES, Identity
from everforge.accounts.links import LINKS_MAX, OF_ACCOUNT_MAX
from everforge.accounts.mail import RecordingMailer
from everforge.accounts.service import Accounts
from everforge.accounts.settings import AccountSettings
from everforge.store.accounts import AccountRecord, TokenRecord
from everforge.store.base import MachineRecord
from everforge.store.memory import MemoryStore
from everforge.wire.errors import (
    AccountNameAlreadyExists,
    AccountNotFound,
    EmailAlreadyExists,
    Forbidden,
    InvalidInput,
    InvitationInvalid,
    LinkInvalid,
    MailFailed,
    SignupClosed,
    StoreDamaged,
    TokenNotFound,
    TooMany,
    Unauthenticated,
    WrongState,
)
from everforge.wire.ids import OWNER, AccountId, TokenId, new_account_id
from tests.conformance.store_suite import machine


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class House:
    """Accounts that can be started again, on the same store and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryStore()
        self.clock = Clock()
        self.reads = 0
        self.running: list[Accounts] = []
        self.book = self.store.accounts
        token = self.book.token

        async def counted(id: TokenId) -> tuple[TokenRecord, AccountRecord] | None:
            self.reads += 1
            return await token(id)

        self.book.token = counted

    async def open(self, mailer: RecordingMailer | None = None, **settings: Any) -> Accounts:
        accounts = Accounts(self.book, self.folder, AccountSettings(**settings), mailer, self.clock)
        await accounts.start()
        self.running.append(accounts)
        return accounts

    @property
    def owner_token(self) -> str:
        return (self.folder / "owner.token").read_text().strip()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    yield house
    for accounts in house.running:
        await accounts.close()


@pytest.fixture
async def accounts(house: House) -> Accounts:
    return await house.open()


@pytest.fixture
async def owner(house: House, accounts: Accounts) -> Identity:
    return await accounts.identify(house.owner_token)


# --- the owner -----------------------------------------------------------------------------------------------------------------------


async def test_the_first_start_makes_the_owner_and_a_token_that_only_this_user_reads(house: House) -> None:
    accounts = await house.open()
    owner = await accounts.identify(house.owner_token)
    assert (owner.account, owner.account_name, owner.scopes, owner.is_owner) == (OWNER, "owner", SCOPES, True)
    for name in ("owner.token", "token.key"):
        assert stat.S_IMODE((house.folder / name).stat().st_mode) == 0o600
    assert sorted(os.listdir(house.folder)) == ["owner.token", "token.key"]


async def test_the_owners_token_is_made_anew_only_when_it_is_missing_or_no_longer_good(house: House) -> None:
    accounts = await house.open()
    first = house.owner_token
    accounts = await house.open()
    assert house.owner_token == first
    await accounts.revoke(await accounts.identify(first), (await accounts.identify(first)).token_id)
    for spoil in (lambda: None, (house.folder / "owner.token").unlink, lambda: (house.folder / "owner.token").write_text("x" * 900)):
        spoil()
        accounts = await house.open()
        assert house.owner_token != first
        assert (await accounts.identify(house.owner_token)).is_owner
        first = house.owner_token


@pytest.mark.parametrize("key", ["", "abc", "zz" * 32, "00" * 400])
async def test_a_key_that_is_none_is_said_and_left_alone(house: House, key: str) -> None:
    (house.folder / "token.key").write_text(key)
    with pytest.raises(StoreDamaged, match=r"token\.key"):
        await house.open()
    assert (house.folder / "token.key").read_text() == key


async def test_secrets_are_nowhere_in_the_store(house: House, accounts: Accounts) -> None:
    kept = repr(vars(house.book))
    id, secret = house.owner_token.split(".")
    assert id in kept
    assert secret not in kept


# --- who is asking -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "", ".", "a.b", "ü" * 53, "t" * 53, "x" * 100_000, "t23456789abc." + "a" * 40, "\ud800." + "a" * 51])
async def test_what_is_no_token_is_refused_alike_and_without_a_look_into_the_store(house: House, accounts: Accounts, token: str | None) -> None:
    house.reads = 0
    with pytest.raises(Unauthenticated) as error:
        await accounts.identify(token)
    with pytest.raises(Unauthenticated) as other:
        await accounts.identify(house.owner_token[:-1])
    assert str(error.value) == str(other.value)
    assert house.reads == 0
    assert accounts.cached(token) is None


async def test_a_token_that_was_seen_costs_no_look_into_the_store(house: House, accounts: Accounts, owner: Identity) -> None:
    house.reads = 0
    assert accounts.cached(house.owner_token) == owner
    assert await accounts.identify(house.owner_token) == owner
    assert house.reads == 0


async def test_a_token_that_went_bad_costs_one_look(house: House, accounts: Accounts, owner: Identity) -> None:
    made = await accounts.new_token(owner)
    await accounts.revoke(owner, made.record.id)
    house.reads = 0
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            await accounts.identify(made.token)
    assert house.reads == 1


async def test_what_is_remembered_of_tokens_is_bounded_and_all_of_them_stay_good(house: House) -> None:
    accounts = await house.open(cached_tokens_max=3)
    owner = await accounts.identify(house.owner_token)
    made = [await accounts.new_token(owner) for _ in range(8)]
    for one in made * 2:
        assert (await accounts.identify(one.token)).token_id == one.record.id
    for one in made:
        await accounts.revoke(owner, one.record.id)
        with pytest.raises(Unauthenticated):
            await accounts.identify(one.token)
    assert len(accounts._known) <= 6  # pyright: ignore[reportPrivateUsage]


async def test_a_token_revoked_while_it_is_looked_up_is_not_let_in(house: House, accounts: Accounts, owner: Identity) -> None:
    made = await accounts.new_token(owner)
    token = house.book.token
    revoked = False

    async def slow(id: TokenId) -> tuple[TokenRecord, AccountRecord] | None:
        nonlocal revoked
        found = await token(id)
        if not revoked:
            revoked = True
            await accounts.revoke(owner, made.record.id)
        return found

    house.book.token = slow
    with pytest.raises(Unauthenticated):
        await accounts.identify(made.token)
    assert accounts.cached(made.token) is None


async def test_when_a_token_was_used_is_written_later(house: House, accounts: Accounts, owner: Identity) -> None:
    house.clock.now += 5
    accounts.cached(house.owner_token)
    await accounts.close()
    assert [t.last_used_at for t in await house.book.tokens(OWNER)] == [house.clock.now]


# --- tokens --------------------------------------------------------------------------------------------------------------------------


async def test_a_token_has_the_scopes_it_was_made_with(accounts: Accounts, owner: Identity) -> None:
    made = await accounts.new_token(owner, name="ci", scopes=["read", "exec"])
    identity = await accounts.identify(made.token)
    assert (identity.token_name, identity.scopes, identity.account) == ("ci", {"read", "exec"}, OWNER)
    identity.require("exec")
    with pytest.raises(Forbidden):
        identity.require("manage")


async def test_a_token_cannot_make_one_with_more_than_it_has(house: House, accounts: Accounts, owner: Identity) -> None:
    until = house.clock.now + 100
    less = await accounts.identify((await accounts.new_token(owner, scopes=["manage"], expires_at=until)).token)
    wanted: list[dict[str, Any]] = [{"scopes": ["manage", "read"]}, {"expires_at": until + 1}]
    for more in wanted:
        with pytest.raises(Forbidden):
            await accounts.new_token(less, **more)
    same = await accounts.new_token(less)
    assert (same.record.scopes, same.record.expires_at) == ({"manage"}, until)


@pytest.mark.parametrize(
    "wanted",
    [{"name": ""}, {"name": "a\nb"}, {"name": "x" * 101}, {"scopes": []}, {"scopes": "read"}, {"scopes": ["all"]}, {"scopes": [[]]}]
    + [{"expires_at": value} for value in (1.0, float("nan"), float("inf"), "tomorrow", True)],
)
async def test_a_token_that_makes_no_sense_is_refused(accounts: Accounts, owner: Identity, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await accounts.new_token(owner, **wanted)
    assert len(await accounts.tokens(owner)) == 1


async def test_an_account_has_only_so_many_tokens(house: House) -> None:
    accounts = await house.open(tokens_max=2)
    owner = await accounts.identify(house.owner_token)
    await accounts.new_token(owner)
    with pytest.raises(TooMany):
        await accounts.new_token(owner)


async def test_an_expired_token_is_refused_whether_it_was_seen_before_or_not(house: House, accounts: Accounts, owner: Identity) -> None:
    seen, unseen = [await accounts.new_token(owner, expires_at=house.clock.now + 10) for _ in range(2)]
    await accounts.identify(seen.token)
    house.clock.now += 10
    for made in (seen, unseen):
        assert accounts.cached(made.token) is None
        with pytest.raises(Unauthenticated):
            await accounts.identify(made.token)


async def test_a_revoked_token_is_refused_at_once_and_its_streams_hear_of_it(accounts: Accounts, owner: Identity) -> None:
    made, other = [await accounts.new_token(owner) for _ in range(2)]
    identity, event = await accounts.identify(made.token), None
    event = accounts.watch(identity)
    others = accounts.watch(await accounts.identify(other.token))
    await accounts.revoke(owner, made.record.id)
    assert accounts.cached(made.token) is None
    assert (event.is_set(), others.is_set()) == (True, False)
    del event
    assert accounts.watch(identity).is_set()  # identified before, asked after
    with pytest.raises(TokenNotFound):
        await accounts.revoke(owner, made.record.id)


async def test_streams_hear_of_a_token_that_expires(house: House, accounts: Accounts, owner: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.accounts.revocations.LOOK_SECONDS", 0.01)
    made = await accounts.new_token(owner, expires_at=house.clock.now + 1000)
    event = accounts.watch(await accounts.identify(made.token))
    assert not event.is_set()
    house.clock.now += 1001  # as when the computer's clock is set
    await asyncio.wait_for(event.wait(), 10)


async def test_a_token_of_another_account_cannot_be_revoked(accounts: Accounts, owner: Identity) -> None:
    ann = await accounts.create_account(owner, "ann")
    assert ann.token
    identity = await accounts.identify(ann.token)
    with pytest.raises(TokenNotFound):
        await accounts.revoke(identity, owner.token_id)
    assert [t.account for t in await accounts.tokens(identity)] == [identity.account]


async def test_a_revocation_goes_through_when_the_caller_goes_away(house: House, accounts: Accounts, owner: Identity) -> None:
    made = await accounts.new_token(owner)
    await accounts.identify(made.token)
    revoke, begun, go = house.book.revoke_token, asyncio.Event(), asyncio.Event()

    async def slow(account: AccountId, id: TokenId, at: float) -> None:
        await revoke(account, id, at)
        begun.set()
        await go.wait()

    house.book.revoke_token = slow
    asking = asyncio.create_task(accounts.revoke(owner, made.record.id))
    await begun.wait()
    asking.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert accounts.cached(made.token) is None


# --- sign-up -------------------------------------------------------------------------------------------------------------------------


async def test_sign_up_is_by_invitation_unless_it_is_said_otherwise(accounts: Accounts, owner: Identity) -> None:
    with pytest.raises(InvitationInvalid):
        await accounts.sign_up("a@example.org", "ann")
    invited = await accounts.invite(owner)
    signed = await accounts.sign_up("a@example.org", "Ann", invited.invitation)
    assert signed.token
    assert not signed.mailed
    identity = await accounts.identify(signed.token)
    assert (identity.account_name, identity.scopes, identity.is_owner) == ("Ann", SCOPES, False)
    assert identity.account not in (OWNER, "Ann")
    assert (await accounts.account(identity)).email == "a@example.org"
    with pytest.raises(InvitationInvalid):
        await accounts.sign_up("b@example.org", "bob", invited.invitation)


async def test_an_invitation_may_be_for_one_address_and_for_some_time(house: House, accounts: Accounts, owner: Identity) -> None:
    named = await accounts.invite(owner, email="Ann@example.org")
    with pytest.raises(InvitationInvalid):
        await accounts.sign_up("bob@example.org", "bob", named.invitation)
    await accounts.sign_up("ann@EXAMPLE.org", "ann", named.invitation)
    short = await accounts.invite(owner, expires_at=house.clock.now + 10)
    house.clock.now += 10
    with pytest.raises(InvitationInvalid):
        await accounts.sign_up("b@example.org", "bob", short.invitation)


async def test_tokens_and_invitations_are_not_taken_for_each_other(house: House, accounts: Accounts, owner: Identity) -> None:
    with pytest.raises(InvitationInvalid):
        await accounts.sign_up("a@example.org", "ann", house.owner_token)
    with pytest.raises(Unauthenticated):
        await accounts.identify((await accounts.invite(owner)).invitation)


async def test_an_open_server_takes_anybody_and_a_closed_one_nobody(house: House) -> None:
    closed = await house.open(signup="closed")
    owner = await closed.identify(house.owner_token)
    for call in (closed.sign_up("a@example.org", "ann"), closed.invite(owner)):
        with pytest.raises(SignupClosed):
            await call
    opened = await house.open(signup="open")
    assert (await opened.sign_up("a@example.org", "ann")).token
    with pytest.raises(InvitationInvalid):
        await opened.sign_up("b@example.org", "bob", "nonsense")


async def test_no_account_is_named_as_the_id_of_another(house: House, accounts: Accounts, owner: Identity) -> None:
    ada = (await accounts.create_account(owner, "ada")).account
    open_to_all = await house.open(signup="open", signups_per_hour=100)
    for name in (ada.id, ada.id.upper(), new_account_id()):
        with pytest.raises(InvalidInput, match="as the ids of accounts"):
            await accounts.create_account(owner, name)
        with pytest.raises(InvalidInput, match="as the ids of accounts"):
            await open_to_all.sign_up("eve@example.org", name)
    # One that was named so before does not stand before it either.
    await house.book.add_account(AccountRecord(id=new_account_id(), name=ada.id, created_at=1.0))
    assert [await accounts.id_named(named) for named in (ada.id, "ada", "owner", "gone")] == [ada.id, ada.id, OWNER, "gone"]


async def test_names_and_addresses_are_taken_in_any_spelling(house: House) -> None:
    accounts = await house.open(signup="open")
    await accounts.sign_up("a@example.org", "ann")
    with pytest.raises(AccountNameAlreadyExists):
        await accounts.sign_up("b@example.org", "ANN")
    with pytest.raises(EmailAlreadyExists):
        await accounts.sign_up("A@Example.org", "bob")
    with pytest.raises(AccountNameAlreadyExists):
        await accounts.sign_up("b@example.org", "Owner")


@pytest.mark.parametrize("name", ["", "ab", "a" * 17, "-abc", "a b c", "änn", "ann\n", None, 5])
async def test_a_name_that_is_none_is_refused(house: House, name: Any) -> None:
    accounts = await house.open(signup="open")
    with pytest.raises(InvalidInput):
        await accounts.sign_up("a@example.org", name)


@pytest.mark.parametrize(
    "email", ["", "a", "@b", "a@", "a@b c", "a@b\nBcc: x@y", "<a@b.c>", "a@-b.c", "a" * 65 + "@b.c", "a@" + "b." * 130 + "c", None]
)
async def test_an_address_that_is_none_is_refused(house: House, email: Any) -> None:
    accounts = await house.open(signup="open")
    with pytest.raises(InvalidInput):
        await accounts.sign_up(email, "ann")


async def test_with_a_mailer_the_token_is_mailed_and_not_answered(house: House) -> None:
    mailer = RecordingMailer()
    accounts = await house.open(mailer, signup="open")
    signed = await accounts.sign_up("a@example.org", "ann")
    assert signed.mailed
    [mail] = mailer.sent
    assert mail.to == "a@example.org"
    token = next(word for word in mail.text.split() if "." in word and len(word) > 40)
    assert (await accounts.identify(token)).account_name == "ann"


async def test_a_mail_that_cannot_be_sent_leaves_no_account_and_the_invitation_unused(house: House) -> None:
    mailer = RecordingMailer()
    accounts = await house.open(mailer)
    owner = await accounts.identify(house.owner_token)
    invited = await accounts.invite(owner)
    mailer.broken = True
    with pytest.raises(MailFailed):
        await accounts.sign_up("a@example.org", "ann", invited.invitation)
    mailer.broken = False
    assert (await accounts.sign_up("a@example.org", "ann", invited.invitation)).mailed
    with pytest.raises(InvitationInvalid):  # used now: nobody is mailed a token that will not be good
        await accounts.sign_up("b@example.org", "bob", invited.invitation)
    assert len(mailer.sent) == 1


async def test_one_address_tries_only_so_often_and_others_are_not_kept_out(house: House) -> None:
    accounts = await house.open(signup="open", signups_per_hour=2)
    for n in range(2):
        await accounts.sign_up(f"{n}@example.org", f"ann{n}", address=f"2001:db8::{n}")
    with pytest.raises(TooMany) as error:
        await accounts.sign_up("x@example.org", "bob", address="2001:db8::5:5")
    assert error.value.retry == "later"
    assert 0 < int(str(error.value.details["retry_after_seconds"])) <= 3600
    await accounts.sign_up("x@example.org", "bob", address="2001:db8:1::5")


async def test_all_together_make_only_so_many_accounts(house: House) -> None:
    accounts = await house.open(signup="open", signups_per_hour_max=1)
    with pytest.raises(InvalidInput):
        await accounts.sign_up("nonsense", "ann", address="192.0.2.1")
    await accounts.sign_up("a@example.org", "ann", address="192.0.2.1")
    with pytest.raises(TooMany):
        await accounts.sign_up("b@example.org", "bob", address="192.0.2.2")


# --- accounts ------------------------------------------------------------------------------------------------------------------------


async def test_only_the_owner_has_to_do_with_other_accounts(accounts: Accounts, owner: Identity) -> None:
    made = await accounts.create_account(owner, "ann", "a@example.org")
    assert made.token
    ann = await accounts.identify(made.token)
    for call in (accounts.create_account(ann, "bob"), accounts.accounts(ann), accounts.delete_account(ann, "ann"), accounts.invite(ann)):
        with pytest.raises(Forbidden):
            await call
    assert [a.name for a in await accounts.accounts(owner)] == ["ann", "owner"]


async def test_an_account_is_deleted_with_its_tokens_but_not_with_machines(house: House, accounts: Accounts, owner: Identity) -> None:
    made = await accounts.create_account(owner, "ann")
    assert made.token
    ann = await accounts.identify(made.token)
    event = accounts.watch(ann)
    kept: MachineRecord = machine(account=ann.account)
    await house.store.create(kept)
    with pytest.raises(WrongState):
        await accounts.delete_account(owner, "ANN")
    assert accounts.cached(made.token)
    await house.store.purge_deleted(0)
    house.store._names.clear()  # pyright: ignore[reportPrivateUsage]
    await accounts.delete_account(owner, "ANN")
    assert event.is_set()
    with pytest.raises(Unauthenticated):
        await accounts.identify(made.token)
    with pytest.raises(AccountNotFound):
        await accounts.delete_account(owner, "ann")
    with pytest.raises(WrongState):
        await accounts.delete_account(owner, "owner")


@pytest.mark.parametrize("settings", [{"signup": "maybe"}, {"tokens_max": 0}, {"mail_from": "a@b.c"}, {"smtp_url": "smtp://x"}])
async def test_settings_that_make_no_sense_are_refused(house: House, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await house.open(**settings)


# --- log-in links ----------------------------------------------------------------------------------------------------------------------


async def test_a_link_is_good_once_and_for_a_while(house: House, accounts: Accounts, owner: Identity) -> None:
    link = accounts.new_link(owner)
    made = await accounts.redeem(link.code)
    assert (await accounts.identify(made.token)).account == OWNER
    with pytest.raises(LinkInvalid):
        await accounts.redeem(link.code)
    late = accounts.new_link(owner)
    house.clock.now = late.expires_at
    with pytest.raises(LinkInvalid):
        await accounts.redeem(late.code)


async def test_a_link_is_good_no_longer_than_the_token_that_made_it(house: House, accounts: Accounts, owner: Identity) -> None:
    made = await accounts.new_token(owner)
    identity = await accounts.identify(made.token)
    before = accounts.new_link(identity)
    await accounts.revoke(owner, made.record.id)
    after = accounts.new_link(identity)  # by a request that was under way
    brief = await accounts.new_token(owner, expires_at=house.clock.now + 60)
    expired = accounts.new_link(await accounts.identify(brief.token))
    house.clock.now += 61
    for link in (before, after, expired):
        with pytest.raises(LinkInvalid):
            await accounts.redeem(link.code)
    await accounts.redeem(accounts.new_link(owner).code)  # those of others are as good as before


async def test_the_links_of_a_deleted_account_are_gone(house: House, accounts: Accounts, owner: Identity) -> None:
    made = await accounts.create_account(owner, "ada")
    assert made.token is not None
    link = accounts.new_link(await accounts.identify(made.token))
    await accounts.delete_account(owner, "ada")
    with pytest.raises(LinkInvalid):
        await accounts.redeem(link.code)
    assert [token.name for token in await accounts.tokens(owner)] == ["owner.token"]


async def test_links_that_are_gone_leave_their_room_to_others(accounts: Accounts, owner: Identity) -> None:
    made = await accounts.new_token(owner)
    identity = await accounts.identify(made.token)
    for _ in range(OF_ACCOUNT_MAX):
        accounts.new_link(identity)
    with pytest.raises(TooMany):
        accounts.new_link(owner)
    await accounts.revoke(owner, made.record.id)
    accounts.new_link(owner)


async def test_one_account_does_not_use_up_the_links_of_the_others(accounts: Accounts, owner: Identity) -> None:
    other = await accounts.identify((await accounts.create_account(owner, "other")).token)
    with pytest.raises(TooMany):
        for _ in range(LINKS_MAX):
            accounts.new_link(other)
    accounts.new_link(owner)
