"""The account book in the database: reads on the readers' connections, writes through the one writer, as all others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sqlalchemy.engine import Dialect

from everforge.store.accounts import AccountRecord, InvitationRecord, TokenRecord, same
from everforge.store.quotas import QuotaRecord
from everforge.wire.errors import AccountNotFound, InvitationInvalid, TokenNotFound, TooMany, WrongState
from everforge.wire.ids import AccountId, InvitationId, TokenId

from .account_statements import AccountStatements
from .changes import Changes
from .readers import Readers
from .rows import to_json
from .statements import insert_text
from .tables import quotas, tokens
from .writer import Writer

TOKEN_WIDTH = len(tokens.columns)

QUOTA_FIELDS = tuple(f.name for f in fields(QuotaRecord))
_QUOTA = ", ".join(QUOTA_FIELDS)
_QUOTA_OF = f"SELECT {_QUOTA} FROM quotas WHERE account = :account"


class SqlAccounts:
    def __init__(self, dialect: Dialect, writer: Writer, readers: Readers) -> None:
        self._statements = AccountStatements(dialect)
        self._writer = writer
        self._readers = readers

    # --- accounts ------------------------------------------------------------------------------------------------------------------

    async def add_account(self, account: AccountRecord, token: TokenRecord | None = None, invitation: InvitationId | None = None) -> None:
        def apply(changes: Changes) -> None:
            if invitation is not None:
                used = {"invitation": invitation, "at": account.created_at}
                if not changes.connection.execute(self._statements.use_invitation, used).rowcount:
                    raise InvitationInvalid("the invitation was used already")
            changes.connection.execute(self._statements.insert_account, _account_row(account))
            if token is not None:
                changes.connection.execute(self._statements.insert_token, _token_row(token))

        await self._writer.write(apply, durable=True)

    async def account(self, id: AccountId) -> AccountRecord | None:
        return await self._one_account(self._statements.account_by_id, {"account": id})

    async def account_named(self, name: str) -> AccountRecord | None:
        return await self._one_account(self._statements.account_by_name, {"same_name": same(name)})

    async def account_with_email(self, email: str) -> AccountRecord | None:
        return await self._one_account(self._statements.account_by_email, {"same_email": same(email)})

    async def accounts(self, after: str, limit: int) -> Sequence[AccountRecord]:
        return [_to_account(row) for row in await self._rows(self._statements.accounts, {"after": same(after), "limit": limit})]

    async def delete_account(self, id: AccountId, at: float) -> Sequence[TokenId]:
        def apply(changes: Changes) -> list[TokenId]:
            connection = changes.connection
            of_it = {"account": id, "at": at}
            if connection.execute(self._statements.has_machines, of_it).fetchone():
                raise WrongState("the account has machines: delete them first")
            if not connection.execute(self._statements.delete_account, of_it).rowcount:
                raise AccountNotFound("there is no such account")
            revoked = [TokenId(row[0]) for row in connection.execute(self._statements.tokens, of_it)]
            connection.execute(self._statements.revoke_all, of_it)
            for statement in self._statements.forget:
                connection.execute(statement, of_it)
            connection.execute("DELETE FROM quotas WHERE account = :account", {"account": id})
            return revoked

        return await self._writer.write(apply, durable=True)

    async def quota(self, account: AccountId) -> QuotaRecord:
        return _to_quota(await self._rows(_QUOTA_OF, {"account": account}))

    async def quotas(self) -> Mapping[AccountId, QuotaRecord]:
        rows = await self._rows(f"SELECT account, {_QUOTA} FROM quotas", {})
        return {AccountId(account): QuotaRecord(**dict(zip(QUOTA_FIELDS, values, strict=True))) for account, *values in rows}

    async def change_quota(self, account: AccountId, values: Mapping[str, Any]) -> QuotaRecord:
        def apply(changes: Changes) -> QuotaRecord:
            connection, of_it = changes.connection, {"account": account}
            if not connection.execute(self._statements.account_by_id, of_it).fetchone():
                raise AccountNotFound("there is no such account")
            changed = replace(_to_quota(connection.execute(_QUOTA_OF, of_it).fetchall()), **values)
            connection.execute("DELETE FROM quotas WHERE account = :account", of_it)
            connection.execute(insert_text(quotas), (account, *(getattr(changed, name) for name in QUOTA_FIELDS)))
            return changed

        return await self._writer.write(apply, durable=True)

    # --- tokens --------------------------------------------------------------------------------------------------------------------

    async def add_token(self, token: TokenRecord, at_most: int) -> None:
        def apply(changes: Changes) -> None:
            connection = changes.connection
            if not connection.execute(self._statements.account_by_id, {"account": token.account}).fetchone():
                raise AccountNotFound("there is no such account")
            living = {"account": token.account, "now": token.created_at}
            if connection.execute(self._statements.count_tokens, living).fetchone()[0] >= at_most:
                raise TooMany(f"an account has {at_most} tokens at most; revoke one that is no longer used")
            connection.execute(self._statements.insert_token, _token_row(token))
            connection.execute(self._statements.forget_tokens, {**living, "at_most": at_most})

        await self._writer.write(apply, durable=True)

    async def token(self, id: TokenId) -> tuple[TokenRecord, AccountRecord] | None:
        rows = await self._rows(self._statements.token, {"token": id})
        return (_to_token(rows[0][:TOKEN_WIDTH]), _to_account(rows[0][TOKEN_WIDTH:])) if rows else None

    async def tokens(self, account: AccountId) -> Sequence[TokenRecord]:
        return [_to_token(row) for row in await self._rows(self._statements.tokens, {"account": account})]

    async def revoke_token(self, account: AccountId, id: TokenId, at: float) -> None:
        def apply(changes: Changes) -> None:
            if not changes.connection.execute(self._statements.revoke, {"token": id, "account": account, "at": at}).rowcount:
                raise TokenNotFound("there is no such token")

        await self._writer.write(apply, durable=True)

    async def note_used(self, used: Mapping[TokenId, float]) -> None:
        rows = [{"token": id, "at": at} for id, at in used.items()]
        await self._writer.write(lambda changes: changes.connection.executemany(self._statements.note_used, rows), durable=False)

    # --- invitations ---------------------------------------------------------------------------------------------------------------

    async def add_invitation(self, invitation: InvitationRecord, at_most: int) -> None:
        def apply(changes: Changes) -> None:
            if changes.connection.execute(self._statements.count_invitations, {"now": invitation.created_at}).fetchone()[0] >= at_most:
                raise TooMany(f"there are {at_most} open invitations, which is the limit; wait until some are used or expire")
            i = invitation
            changes.connection.execute(self._statements.insert_invitation, (i.id, i.hash, i.email, i.created_at, i.expires_at, i.used_at))

        await self._writer.write(apply, durable=True)

    async def invitation(self, id: InvitationId) -> InvitationRecord | None:
        rows = await self._rows(self._statements.invitation, {"invitation": id})
        return _to_invitation(rows[0]) if rows else None

    async def prune(self, before: float) -> None:
        def apply(changes: Changes) -> None:
            for statement in self._statements.prune:
                changes.connection.execute(statement, {"before": before})

        await self._writer.write(apply, durable=False)

    async def _one_account(self, statement: str, wanted: Mapping[str, Any]) -> AccountRecord | None:
        rows = await self._rows(statement, wanted)
        return _to_account(rows[0]) if rows else None

    async def _rows(self, statement: str, wanted: Mapping[str, Any]) -> list[Any]:
        def read(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(statement, wanted).fetchall()

        return await self._readers.read(read)


def _account_row(a: AccountRecord) -> tuple[Any, ...]:
    return (a.id, a.name, same(a.name), a.email, None if a.email is None else same(a.email), a.created_at, None)


def _to_account(row: Sequence[Any]) -> AccountRecord:
    id, name, created_at, email = row
    return AccountRecord(id=id, name=name, created_at=created_at, email=email)


def _to_quota(rows: Sequence[Any]) -> QuotaRecord:
    return QuotaRecord(**dict(zip(QUOTA_FIELDS, rows[0], strict=True))) if rows else QuotaRecord()


def _token_row(t: TokenRecord) -> tuple[Any, ...]:
    return (t.id, t.account, t.hash, t.name, " ".join(sorted(t.scopes)), t.created_at, t.last_used_at, t.expires_at, t.revoked_at, to_json(t.tags))


def _to_token(row: Sequence[Any]) -> TokenRecord:
    id, account, hash, name, scopes, created_at, last_used_at, expires_at, revoked_at, tags = row
    return TokenRecord(
        id=id,
        account=account,
        hash=hash,
        name=name,
        scopes=frozenset(scopes.split()),
        created_at=created_at,
        last_used_at=last_used_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        tags=json.loads(tags),
    )


def _to_invitation(row: Sequence[Any]) -> InvitationRecord:
    id, hash, email, created_at, expires_at, used_at = row
    return InvitationRecord(id=id, hash=hash, email=email, created_at=created_at, expires_at=expires_at, used_at=used_at)
