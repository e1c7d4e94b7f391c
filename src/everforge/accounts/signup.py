"""Sign-up: who may make an account of their own, and how they get its token."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass

from everforge.store.accounts import AccountBook, AccountRecord, TokenRecord, same
from everforge.store.threads import to_its_end
from everforge.wire.errors import AccountNameAlreadyExists, EmailAlreadyExists, InvalidInput, InvitationInvalid, MailFailed, SignupClosed, TooMany
from everforge.wire.ids import ACCOUNT_ID, InvitationId, new_account_id, new_token_id

from . import requests
from .credentials import Credentials
from .identity import SCOPES
from .mail import Mail, Mailer
from .rates import Rates
from .settings import AccountSettings

log = logging.getLogger(__name__)
HOUR_SECONDS = 3600.0
EVERYBODY = "everybody"
WELCOME = """\
Hello {name},

this is the token of your account:

    {token}

Log in with it: everforge login

It is not shown again; keep it safe.
"""


@dataclass(frozen=True, slots=True)
class SignedUp:
    account: AccountRecord
    token: str | None  # None: it was mailed

    @property
    def mailed(self) -> bool:
        return self.token is None


class Signups:
    def __init__(
        self, book: AccountBook, credentials: Credentials, settings: AccountSettings, mailer: Mailer | None, clock: Callable[[], float]
    ) -> None:
        self._book = book
        self._credentials = credentials
        self._settings = settings
        self._mailer = mailer
        self._clock = clock
        self._tries = Rates(settings.signups_per_hour, HOUR_SECONDS)
        self._made = Rates(settings.signups_per_hour_max, HOUR_SECONDS)
        self._under_way: set[tuple[str, str]] = set()  # names and addresses

    async def sign_up(self, email: str, account_name: str, invitation: str | None, address: str) -> SignedUp:
        self._tries.count(address)
        if self._settings.signup == "closed":
            raise SignupClosed("this server takes no sign-ups; ask its owner for an account")
        account = self.new_account(requests.account_name(account_name), requests.email(email))
        invited = await self._invited(invitation, account)
        with self._alone(account):
            await self._check_free(account)
            self._made.count(EVERYBODY)
            record, token = self.first_token(account)
            if self._mailer is not None:
                # Before the account is there: a mail for an account that is not does less harm than an account whose token nobody has.
                await self._send(self._mailer, account, token)
            await to_its_end(self._book.add_account(account, record, invited))
        return SignedUp(account, None if self._mailer else token)

    def new_account(self, name: str, email: str | None) -> AccountRecord:
        """Raises InvalidInput for a name that could be the id of another: who asks for that one is not to find this one."""
        if ACCOUNT_ID.fullmatch(same(name)):
            raise InvalidInput(f"{name} is not an account name: it looks as the ids of accounts do; take another")
        return AccountRecord(id=new_account_id(), name=name, email=email, created_at=self._clock())

    def first_token(self, account: AccountRecord) -> tuple[TokenRecord, str]:
        id = new_token_id()
        text = self._credentials.new(id)
        hash = self._credentials.hash(text)
        return TokenRecord(id=id, account=account.id, hash=hash, name="first", scopes=SCOPES, created_at=account.created_at), text

    async def _invited(self, invitation: object, account: AccountRecord) -> InvitationId | None:
        if invitation is None:
            if self._settings.signup == "invitation":
                raise InvitationInvalid("sign-up is by invitation: give the one that the owner of the server sent you")
            return None
        id = self._credentials.id_of(invitation)
        found = await self._book.invitation(InvitationId(id)) if id is not None else None
        good = (
            found is not None
            and self._credentials.is_hash_of(str(invitation), found.hash)
            and found.used_at is None
            and found.expires_at > self._clock()
            and (found.email is None or same(found.email) == same(account.email or ""))
        )
        if found is None or not good:
            raise InvitationInvalid("the invitation is unknown, used, too old, or for another address; ask the owner of the server for a new one")
        return found.id

    async def _check_free(self, account: AccountRecord) -> None:
        if await self._book.account_named(account.name):
            raise AccountNameAlreadyExists(f"there is an account {account.name} already; take another name")
        if account.email and await self._book.account_with_email(account.email):
            raise EmailAlreadyExists("there is an account with that address already")

    @contextlib.contextmanager
    def _alone(self, account: AccountRecord) -> Generator[None]:
        """Two at once with the same name would both be mailed a token."""
        wanted = {("name", same(account.name)), ("email", same(account.email or ""))}
        if wanted & self._under_way:
            raise TooMany("a sign-up with that name or address is under way", retry_after_seconds=1)
        self._under_way |= wanted
        try:
            yield
        finally:
            self._under_way -= wanted

    async def _send(self, mailer: Mailer, account: AccountRecord, token: str) -> None:
        try:
            await mailer.send(Mail(account.email or "", "Your Everforge token", WELCOME.format(name=account.name, token=token)))
        except MailFailed as e:
            log.warning("a sign-up failed: %s (%s)", e.message, e.__cause__)
            raise
