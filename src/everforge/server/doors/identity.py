"""Accounts, tokens, sign-up, usage."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from everforge.store.accounts import TokenRecord
from everforge.store.quotas import Quota, QuotaRecord
from everforge.wire import api
from everforge.wire.errors import (
    AccountNameAlreadyExists,
    AccountNotFound,
    EmailAlreadyExists,
    InvitationInvalid,
    MailFailed,
    SignupClosed,
    TokenNotFound,
    TooMany,
    WrongState,
)
from everforge.wire.ids import OWNER

from ..calls import Call
from ..routes import Routes
from ..times import from_wire, to_wire, to_wire_or_none
from ..witness import address_of

routes = Routes("identity")


def sorted_scopes(scopes: frozenset[str]) -> list[api.Scope]:
    return cast("list[api.Scope]", sorted(scopes))


@routes.add("GET", "/v1/whoami", scope="read")
async def whoami(call: Call) -> api.Whoami:
    """Whose token this is."""
    return api.Whoami(account=call.identity.account_name)


@routes.add("GET", "/v1/account", scope="read")
async def account(call: Call) -> api.Account:
    """The account, and the token that is asking."""
    found = await call.service.accounts.account(call.identity)
    token = api.TokenInUse(
        id=call.identity.token_id, name=call.identity.token_name, scopes=sorted_scopes(call.identity.scopes), tags=dict(call.identity.tags)
    )
    return api.Account(account=found.name, email=found.email, owner=call.identity.is_owner, created_at=to_wire(found.created_at), token=token)


@routes.add("GET", "/v1/usage", scope="read")
async def usage(call: Call) -> api.Usage:
    """What the account has and has used."""
    found = await call.machines.usage()
    return api.Usage(
        machines=found.machines,
        awake=found.awake,
        asleep=found.asleep,
        broken=found.broken,
        instructions=found.instructions,
        runtime_ms=found.runtime_ms,
        disk_bytes=found.disk_bytes,
        egress_bytes=found.egress_bytes,
        awake_seconds=found.awake_seconds,
        quota=shown_quota(await call.service.accounts.quotas.of(call.identity.account)),
    )


def shown_quota(quota: Quota) -> api.Quota:
    return api.Quota(**{f.name: getattr(quota, f.name) for f in fields(quota)})


# --- tokens ------------------------------------------------------------------------------------------------------------------------


def _token_fields(token: TokenRecord) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted_scopes(token.scopes),
        "tags": dict(token.tags),
        "created_at": to_wire(token.created_at),
        "last_used_at": to_wire_or_none(token.last_used_at),
        "expires_at": to_wire_or_none(token.expires_at),
    }


@routes.add("GET", "/v1/tokens", scope="manage")
async def list_tokens(call: Call) -> api.TokenList:
    """The account's tokens, without their secrets."""
    return api.TokenList(tokens=[api.Token(**_token_fields(token)) for token in await call.service.accounts.tokens(call.identity)])


@routes.add(
    "POST", "/v1/tokens", action="token.create", scope="manage", confidential=True, errors=(TooMany,),
    example={"name": "notebook", "scopes": ["read", "exec"]},
)  # fmt: skip
async def new_token(call: Call, body: api.NewToken | None = None) -> api.TokenCreated:
    """A new token, shown this once. It may do no more than the one that asks for it."""
    wanted = body or api.NewToken()
    expires_at = None if wanted.expires_at is None else from_wire("expires_at", wanted.expires_at)
    made = await call.service.accounts.new_token(call.identity, name=wanted.name, scopes=wanted.scopes, expires_at=expires_at, tags=wanted.tags)
    call.notes.update({"scopes": sorted_scopes(made.record.scopes)} | ({"tags": dict(made.record.tags)} if made.record.tags else {}))
    return api.TokenCreated(**_token_fields(made.record), token=made.token)


@routes.add("DELETE", "/v1/tokens/{id}", action="token.revoke", scope="manage", errors=(TokenNotFound,))
async def revoke_token(call: Call) -> api.Deleted:
    """Revoke a token, at once."""
    await call.service.accounts.revoke(call.identity, call.path("id"))
    return api.Deleted(deleted=True)


# --- quotas ------------------------------------------------------------------------------------------------------------------------


@routes.add(
    "PATCH", "/v1/accounts/{account}/quota", action="account.quota", scope="manage", owner_only=True, errors=(AccountNotFound,),
    example={"machines": 20, "awake": 5},
)  # fmt: skip
async def change_quota(call: Call, body: api.QuotaChange) -> api.Quota:
    """What an account may have at most."""
    given = {f.name: value for f in fields(body) if (value := getattr(body, f.name)) is not None}
    quota = await call.service.accounts.set_quota(call.identity, call.path("account"), given)
    call.notes.update(given)  # not before: now they are numbers that can be written down
    return shown_quota(quota)


# --- accounts ----------------------------------------------------------------------------------------------------------------------


@routes.add("GET", "/v1/accounts", scope="manage", owner_only=True)
async def list_accounts(call: Call) -> api.AccountList:
    """All accounts of the server."""
    found = await call.service.accounts.accounts(call.identity)
    set_here, quotas = await call.service.accounts.all_quotas(call.identity), call.service.accounts.quotas
    shown = [
        api.Account(
            account=a.name, email=a.email, owner=a.id == OWNER, created_at=to_wire(a.created_at),
            quota=shown_quota(quotas.over_default(a.id, set_here.get(a.id, QuotaRecord()))),
        )
        for a in found
    ]  # fmt: skip
    return api.AccountList(accounts=shown)


@routes.add(
    "POST",
    "/v1/accounts",
    action="account.create",
    confidential=True,
    scope="manage",
    owner_only=True,
    errors=(AccountNameAlreadyExists, EmailAlreadyExists),
    example={"account_name": "ada"},
)
async def new_account(call: Call, body: api.NewAccount) -> api.AccountCreated:
    """A new account, with a token that is shown this once."""
    made = await call.service.accounts.create_account(call.identity, body.account_name, body.email)
    assert made.token is not None
    return api.AccountCreated(account=made.account.name, token=made.token)


@routes.add("DELETE", "/v1/accounts/{account}", action="account.delete", scope="manage", owner_only=True, errors=(AccountNotFound, WrongState))
async def delete_account(call: Call) -> api.Deleted:
    """Delete an account that has no machines any more."""
    gone = await call.service.accounts.delete_account(call.identity, call.path("account"))
    await call.service.webhooks.remove_all(gone)
    await call.service.egress.secrets.forget(gone)
    return api.Deleted(deleted=True)


@routes.add(
    "POST",
    "/v1/invitations",
    action="account.invite",
    confidential=True,
    scope="manage",
    owner_only=True,
    errors=(SignupClosed, TooMany),
    example={"email": "ada@example.org"},
)
async def invite(call: Call, body: api.NewInvitation | None = None) -> api.Invitation:
    """An invitation to sign up."""
    wanted = body or api.NewInvitation()
    expires_at = None if wanted.expires_at is None else from_wire("expires_at", wanted.expires_at)
    made = await call.service.accounts.invite(call.identity, email=wanted.email, expires_at=expires_at)
    return api.Invitation(invitation=made.invitation, expires_at=to_wire(made.record.expires_at))


@routes.add(
    "POST", "/internal/signup", action="account.signup", scope=None, confidential=True,
    errors=(AccountNameAlreadyExists, EmailAlreadyExists, SignupClosed, InvitationInvalid, TooMany, MailFailed),
    example={"email": "ada@example.org", "account_name": "ada"},
)  # fmt: skip
async def sign_up(call: Call, body: api.SignUp) -> api.SignedUp:
    """Sign up, where the server's owner allows it. The token is mailed, or answered this once where there is no mail."""
    done = await call.service.accounts.sign_up(body.email, body.account_name, body.invitation, address=address_of(call.request))
    return api.SignedUp(account=done.account.name, token=done.token, mailed=done.mailed)
