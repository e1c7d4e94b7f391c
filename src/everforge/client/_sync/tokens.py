# Made from _async/tokens.py by tools/make_sync.py; change it there.
"""The tokens of an account, and for the server's owner its accounts and invitations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everforge.wire import api

from .door import Door, segment


class Tokens:
    def __init__(self, door: Door) -> None:
        self._door = door

    def list(self) -> list[api.Token]:
        return (self._door.get(api.TokenList, "/tokens")).tokens

    def create(
        self,
        name: str | None = None,
        *,
        scopes: Sequence[api.Scope] | None = None,
        expires_at: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> api.TokenCreated:
        """Its `token` is shown this once. With `tags` it is for machines that have all of them, and for nothing else."""
        request = api.NewToken(
            name=name, scopes=None if scopes is None else [*scopes], expires_at=expires_at, tags=None if tags is None else dict(tags)
        )
        return self._door.post(api.TokenCreated, "/tokens", request)

    def revoke(self, id: str) -> None:
        """At once; connections that use it are closed."""
        self._door.delete(f"/tokens/{segment(id)}")

    def link(self) -> api.LogInLink:
        """To be opened once, on another computer: whoever does has a token that may what this one may."""
        return self._door.post(api.LogInLink, "/links")


class Accounts:
    """For the server's owner."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def list(self) -> list[api.Account]:
        return (self._door.get(api.AccountList, "/accounts")).accounts

    def create(self, name: str, *, email: str | None = None) -> api.AccountCreated:
        """Its `token` is shown this once."""
        return self._door.post(api.AccountCreated, "/accounts", api.NewAccount(account_name=name, email=email))

    def delete(self, name: str) -> None:
        self._door.delete(f"/accounts/{segment(name)}")

    def quota(
        self,
        name: str,
        *,
        machines: int | None = None,
        awake: int | None = None,
        memory_mb: int | None = None,
        disk_mb: int | None = None,
        requests_per_second: float | None = None,
        egress_bytes_per_day: int | None = None,
    ) -> api.Quota:
        """What the account may have at most, after the change: what is not given stays; 0 is no limit, -1 what the server's settings say."""
        request = api.QuotaChange(
            machines=machines, awake=awake, memory_mb=memory_mb, disk_mb=disk_mb, requests_per_second=requests_per_second,
            egress_bytes_per_day=egress_bytes_per_day,
        )  # fmt: skip
        return self._door.post(api.Quota, f"/accounts/{segment(name)}/quota", request, method="PATCH", again=True)

    def invite(self, *, email: str | None = None, expires_at: str | None = None) -> api.Invitation:
        """Whoever has it can sign up once."""
        return self._door.post(api.Invitation, "/invitations", api.NewInvitation(email=email, expires_at=expires_at))
