"""The fixed statements of the account book, compiled once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from .statements import compile_text, insert_text
from .tables import accounts, egress_defaults, invitations, machines, secrets, tokens

ACCOUNT_COLUMNS = (accounts.c.id, accounts.c.name, accounts.c.created_at, accounts.c.email)


class AccountStatements:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.insert_account = insert_text(accounts)
        self.insert_token = insert_text(tokens)
        self.insert_invitation = insert_text(invitations)
        self._of_accounts()
        self._of_tokens()
        # What an account has beside machines and tokens.
        self.forget = [self._text(sa.delete(table).where(table.c.account == _text("account"))) for table in (secrets, egress_defaults)]
        self._of_invitations()
        self.prune = [self._text(sa.delete(tokens).where(sa.or_(_is_past(tokens.c.revoked_at), _is_past(tokens.c.expires_at))))]
        self.prune.append(self._text(sa.delete(invitations).where(sa.or_(_is_past(invitations.c.used_at), _is_past(invitations.c.expires_at)))))

    def _of_accounts(self) -> None:
        living = sa.select(*ACCOUNT_COLUMNS).where(accounts.c.deleted_at.is_(None))
        id = accounts.c.id == _text("account")
        self.account_by_id = self._text(living.where(id))
        self.account_by_name = self._text(living.where(accounts.c.same_name == _text("same_name")))
        self.account_by_email = self._text(living.where(accounts.c.same_email == _text("same_email")))
        self.accounts = self._text(
            living.where(accounts.c.same_name > _text("after")).order_by(accounts.c.same_name).limit(sa.bindparam("limit", type_=sa.BigInteger))
        )
        self.has_machines = self._text(
            sa.select(machines.c.id).where(machines.c.account == _text("account"), machines.c.deleted_at.is_(None)).limit(1)
        )
        self.delete_account = self._text(sa.update(accounts).where(id, accounts.c.deleted_at.is_(None)).values(deleted_at=sa.bindparam("at")))

    def _of_tokens(self) -> None:
        of_account = sa.and_(tokens.c.account == _text("account"), tokens.c.revoked_at.is_(None))
        self.token = self._text(
            sa.select(*tokens.c, *ACCOUNT_COLUMNS)
            .join_from(tokens, accounts, accounts.c.id == tokens.c.account)
            .where(tokens.c.id == _text("token"), accounts.c.deleted_at.is_(None))
        )
        self.tokens = self._text(sa.select(*tokens.c).where(of_account).order_by(tokens.c.created_at, tokens.c.id))
        lives = sa.or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > sa.bindparam("now"))
        self.count_tokens = self._text(sa.select(sa.func.count()).select_from(tokens).where(of_account, lives))
        revoked: dict[str, Any] = {"revoked_at": sa.bindparam("at"), "tags": sa.literal_column("'{}'")}
        self.revoke_all = self._text(sa.update(tokens).where(of_account).values(revoked))
        self.revoke = self._text(sa.update(tokens).where(of_account, tokens.c.id == _text("token")).values(revoked))
        over = sa.or_(tokens.c.revoked_at.is_not(None), tokens.c.expires_at <= sa.bindparam("now"))
        found = sa.select(tokens.c.id).where(tokens.c.account == _text("account"), over)
        newest_first = sa.func.coalesce(tokens.c.revoked_at, tokens.c.expires_at).desc(), tokens.c.id.desc()
        beyond = found.order_by(*newest_first).offset(sa.bindparam("at_most", type_=sa.BigInteger))
        self.forget_tokens = self._text(sa.delete(tokens).where(tokens.c.id.in_(beyond)))
        self.note_used = self._text(sa.update(tokens).where(tokens.c.id == _text("token")).values(last_used_at=sa.bindparam("at")))

    def _of_invitations(self) -> None:
        id = invitations.c.id == _text("invitation")
        self.invitation = self._text(sa.select(*invitations.c).where(id))
        self.use_invitation = self._text(sa.update(invitations).where(id, invitations.c.used_at.is_(None)).values(used_at=sa.bindparam("at")))
        open = sa.and_(invitations.c.used_at.is_(None), invitations.c.expires_at > sa.bindparam("now"))
        self.count_invitations = self._text(sa.select(sa.func.count()).select_from(invitations).where(open))

    def _text(self, clause: sa.ClauseElement) -> str:
        return compile_text(self._dialect, clause)


def _text(name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=sa.Text)


def _is_past(column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return column < sa.bindparam("before")
