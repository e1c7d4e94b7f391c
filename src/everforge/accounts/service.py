"""The door to accounts: what a server calls to know who is asking, and to change who may."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everforge.store.accounts import AccountBook, AccountRecord, InvitationRecord, TokenRecord
from everforge.store.quotas import Quota, QuotaRecord
from everforge.store.threads import to_its_end
from everforge.wire.errors import AccountNotFound, DiskFull, Forbidden, SignupClosed, Unauthenticated, WrongState
from everforge.wire.ids import ACCOUNT_ID, OWNER, AccountId, TokenId, new_invitation_id, new_token_id

from . import credentials, requests
from .credentials import Credentials
from .identity import SCOPES, Identity
from .known import KnownTokens
from .links import Link, Links, invalid
from .mail import Mailer
from .quotas import AccountQuotas, check_quota
from .revocations import Revocations
from .settings import AccountSettings, check
from .signup import SignedUp, Signups
from .throttle import Throttle

log = logging.getLogger(__name__)
UPKEEP_SECONDS = 60.0  # a crash forgets no more of when tokens were used
PRUNE_ROUNDS = 60
FORGOTTEN_SECONDS = (
    30 * 24 * 3600.0
)  # tokens and invitations that are good no longer stay so long, if not too many follow them, for whoever asks what happened
KEY_FILE = "token.key"
OWNER_TOKEN_FILE = "owner.token"
ACCOUNTS_PAGE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class NewToken:
    record: TokenRecord
    token: str  # shown once


@dataclass(frozen=True, slots=True)
class NewInvitation:
    record: InvitationRecord
    invitation: str  # shown once


class Accounts:
    """`start` it before anything else. `folder` is the data folder: the server's key and the owner's token lie there."""

    def __init__(
        self,
        book: AccountBook,
        folder: Path,
        settings: AccountSettings | None = None,
        mailer: Mailer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings or AccountSettings()
        check(self.settings)
        self._book = book
        self._folder = folder
        self._mailer = mailer
        self._clock = clock
        self._known = KnownTokens(self.settings.cached_tokens_max)
        self._revocations = Revocations(clock)
        self._links = Links(clock)
        self.quotas = AccountQuotas(book, self.settings)
        self.throttle = Throttle(self.settings)
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises StoreDamaged, DiskFull."""
        key_file = self._folder / KEY_FILE
        if not key_file.exists() and await self._book.account(OWNER) is not None:
            log.warning("%s was missing and is made anew: no token that was given out before is good any more", key_file)
        key = await asyncio.to_thread(credentials.server_key, key_file)
        self._credentials = Credentials(key)
        self._signups = Signups(self._book, self._credentials, self.settings, self._mailer, self._clock)
        if await self._book.account(OWNER) is None:
            await self._book.add_account(AccountRecord(id=OWNER, name="owner", created_at=self._clock()))
        await self._ensure_owner_token()
        self._upkeep = asyncio.create_task(self._keep_up())

    async def close(self) -> None:
        """Before the store is closed."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.wait([self._upkeep])
            await self._note_used()

    # --- who is asking ---------------------------------------------------------------------------------------------------------------

    def cached(self, token: str | None) -> Identity | None:
        """What `identify` would answer, if it is known without a look into the store."""
        if not isinstance(token, str) or len(token) != credentials.LENGTH:
            return None
        return self._known.use(credentials.fingerprint(token), self._clock())

    async def identify(self, token: str | None) -> Identity:
        """Raises Unauthenticated, in the same words whatever is wrong with it."""
        if identity := self.cached(token):
            return identity
        id = self._credentials.id_of(token)
        if token is None or id is None:
            raise _unauthenticated()
        fingerprint = credentials.fingerprint(token)
        if self._known.is_bad(fingerprint):
            raise _unauthenticated()
        identity = await self._look_up(token, TokenId(id))
        if identity is None:
            self._known.add_bad(fingerprint)
            raise _unauthenticated()
        self._known.add(fingerprint, identity)
        return self.cached(token) or identity

    def id_of(self, token: str | None) -> str | None:
        """The id of a token that this server gave out, good or not any more: who comes with it can be named, though not trusted."""
        return self._credentials.id_of(token)

    def watch(self, identity: Identity) -> asyncio.Event:
        """Set as soon as the token is revoked or expired. Streams wait on it, and keep it while they do."""
        return self._revocations.watch(identity)

    async def _look_up(self, token: str, id: TokenId) -> Identity | None:
        while True:
            generation = self._known.generation
            found = await self._book.token(id)
            if generation == self._known.generation:  # else one was revoked meanwhile, perhaps this one
                break
        if found is None or not self._credentials.is_hash_of(token, found[0].hash):
            return None
        record, account = found
        if record.revoked_at is not None or (record.expires_at is not None and record.expires_at <= self._clock()):
            return None
        return Identity(account.id, account.name, record.id, record.name, record.scopes, record.expires_at, record.tags)

    # --- tokens ----------------------------------------------------------------------------------------------------------------------

    async def tokens(self, identity: Identity) -> Sequence[TokenRecord]:
        return await self._book.tokens(identity.account)

    async def new_token(
        self,
        identity: Identity,
        *,
        name: str | None = None,
        scopes: Collection[str] | None = None,
        expires_at: float | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> NewToken:
        """Raises InvalidInput; Forbidden for one that could do more, or longer, than the token that asks; TooMany."""
        now = self._clock()
        wanted = identity.scopes if scopes is None else requests.scopes(scopes)
        until = identity.expires_at if expires_at is None else requests.expires_at(expires_at, now)
        if extra := wanted - identity.scopes:
            raise Forbidden(f"a token cannot make one that may more than itself: {', '.join(sorted(extra))}")
        if identity.expires_at is not None and (until is None or until > identity.expires_at):
            raise Forbidden("a token cannot make one that lives longer than itself")
        limits = requests.tags({} if tags is None else tags)
        together = requests.tags({**limits, **identity.tags})
        if clash := [name for name, value in identity.tags.items() if limits.get(name, value) != value]:
            raise Forbidden(f"a token cannot make one for other machines than its own: {clash[0]}")
        return await to_its_end(self._add_token(identity, requests.token_name(name), wanted, until, together))

    async def _add_token(
        self, identity: Identity, name: str | None, scopes: frozenset[str], expires_at: float | None, tags: Mapping[str, str]
    ) -> NewToken:
        id = new_token_id()
        text = self._credentials.new(id)
        record = TokenRecord(
            id=id,
            account=identity.account,
            hash=self._credentials.hash(text),
            name=name,
            scopes=scopes,
            created_at=self._clock(),
            expires_at=expires_at,
            tags=tags,
        )
        await self._book.add_token(record, self.settings.tokens_max)
        return NewToken(record, text)

    async def revoke(self, identity: Identity, id: str) -> None:
        """At once: when this returns nobody is identified by it, and streams that watch it know. Raises TokenNotFound."""
        await to_its_end(self._revoke(identity, TokenId(id)))

    async def _revoke(self, identity: Identity, id: TokenId) -> None:
        await self._book.revoke_token(identity.account, id, self._clock())
        self._forget([id])

    def _forget(self, ids: Sequence[TokenId]) -> None:
        self._known.drop(ids)
        self._revocations.tell(ids)
        self._links.drop(ids)

    def new_link(self, identity: Identity | None = None) -> Link:
        """A one-time log-in link; the owner's, if nobody in particular asks. Raises TooMany."""
        return self._links.new(identity or Identity(OWNER, "owner", TokenId(""), None, SCOPES))

    async def redeem(self, code: str) -> NewToken:
        """A token for whoever opens a link, once. Raises LinkInvalid, TooMany."""
        identity = self._links.redeem(code)
        if self._revocations.watch(identity).is_set():  # revoked while its last request, which made the link, was under way
            raise invalid()
        return await to_its_end(self._add_token(identity, "log-in link", identity.scopes, identity.expires_at, identity.tags))

    # --- accounts --------------------------------------------------------------------------------------------------------------------

    async def account(self, identity: Identity) -> AccountRecord:
        found = await self._book.account(identity.account)
        if found is None:
            raise _unauthenticated()  # deleted just now
        return found

    async def sign_up(self, email: str, account_name: str, invitation: str | None = None, *, address: str = "") -> SignedUp:
        """`address` is where it comes from. Raises InvalidInput, TooMany, SignupClosed, InvitationInvalid, AccountNameAlreadyExists,
        EmailAlreadyExists, MailFailed."""
        return await self._signups.sign_up(email, account_name, invitation, address)

    async def create_account(self, identity: Identity, account_name: str, email: str | None = None) -> SignedUp:
        """By the owner; the token is answered, to be handed over."""
        identity.require_owner()
        account = self._signups.new_account(requests.account_name(account_name), None if email is None else requests.email(email))
        record, token = self._signups.first_token(account)
        await to_its_end(self._book.add_account(account, record))
        return SignedUp(account, token)

    async def accounts(self, identity: Identity, *, after: str = "", limit: int = ACCOUNTS_PAGE_MAX) -> Sequence[AccountRecord]:
        """By the owner; by name, after the last name seen."""
        identity.require_owner()
        return await self._book.accounts(after, max(1, min(limit, ACCOUNTS_PAGE_MAX)))

    async def all_quotas(self, identity: Identity) -> Mapping[AccountId, QuotaRecord]:
        """By the owner: what was set for accounts."""
        identity.require_owner()
        return await self._book.quotas()

    async def set_quota(self, identity: Identity, account_name: str, given: Mapping[str, Any]) -> Quota:
        """By the owner; what is not named stays. Raises AccountNotFound, InvalidInput."""
        identity.require_owner()
        check_quota(given)
        found = await self._book.account_named(requests.account_name(account_name))
        if found is None:
            raise AccountNotFound(f"there is no account {account_name}")
        return await to_its_end(self.quotas.change(found.id, given))

    def count(self, identity: Identity, quota: Quota) -> None:
        """One more request of it. Raises TooMany."""
        self.throttle.count(identity.account, quota)

    async def id_named(self, name: str) -> AccountId:
        """An id is itself, whoever has a name like it, and perhaps of one that is gone. Anything else is the name of an account."""
        found = None if ACCOUNT_ID.fullmatch(name) else await self._book.account_named(name)
        return AccountId(name) if found is None else found.id

    async def delete_account(self, identity: Identity, account_name: str) -> AccountId:
        """By the owner; its id. Raises AccountNotFound; WrongState while it has machines."""
        identity.require_owner()
        found = await self._book.account_named(requests.account_name(account_name))
        if found is None:
            raise AccountNotFound(f"there is no account {account_name}")
        if found.id == OWNER:
            raise WrongState("the owner's account goes with the server alone")
        await to_its_end(self._delete_account(found))
        return found.id

    async def _delete_account(self, account: AccountRecord) -> None:
        self._forget(await self._book.delete_account(account.id, self._clock()))

    async def invite(self, identity: Identity, *, email: str | None = None, expires_at: float | None = None) -> NewInvitation:
        """By the owner: good for one account."""
        identity.require_owner()
        if self.settings.signup == "closed":
            raise SignupClosed("this server takes no sign-ups: set signup to invitation, or make the account yourself")
        now = self._clock()
        until = requests.expires_at(expires_at, now) or now + self.settings.invitation_seconds
        id = new_invitation_id()
        text = self._credentials.new(id)
        wanted = None if email is None else requests.email(email)
        record = InvitationRecord(id=id, hash=self._credentials.hash(text), email=wanted, created_at=now, expires_at=until)
        await to_its_end(self._book.add_invitation(record, self.settings.invitations_max))
        return NewInvitation(record, text)

    # --- parts -----------------------------------------------------------------------------------------------------------------------

    async def _ensure_owner_token(self) -> None:
        """The command line on the server's own computer finds it there."""
        path = self._folder / OWNER_TOKEN_FILE
        kept = await asyncio.to_thread(credentials.read_secret, path)
        with contextlib.suppress(Unauthenticated):
            identity = await self.identify(kept)
            if identity.is_owner and identity.scopes == SCOPES and not identity.tags:
                return
        owner = Identity(OWNER, "owner", TokenId(""), None, SCOPES)
        made = await self._add_token(owner, OWNER_TOKEN_FILE, SCOPES, None, {})
        await asyncio.to_thread(credentials.write_secret, path, made.token)
        log.info("the owner's token is in %s", path)

    async def _keep_up(self) -> None:
        for round in itertools.count():
            if round % PRUNE_ROUNDS == 0:
                try:
                    await self._book.prune(self._clock() - FORGOTTEN_SECONDS)
                except Exception as e:
                    log.warning("old tokens and invitations are forgotten later: %s", e)
            await asyncio.sleep(UPKEEP_SECONDS)
            await self._note_used()

    async def _note_used(self) -> None:
        if used := self._known.take_used():
            try:
                await self._book.note_used(used)
            except DiskFull:
                log.warning("when tokens were used is not recorded: the disk is full")
            except Exception:
                log.exception("when tokens were used is not recorded")


def _unauthenticated() -> Unauthenticated:
    return Unauthenticated("give a token of this server that is neither revoked nor expired: Authorization: Bearer ID.SECRET")
