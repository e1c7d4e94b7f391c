"""Who is asking: accounts, their quotas and usage, tokens, sign-up and log-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .base import Request

Scope = Literal["read", "exec", "manage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whoami:
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInUse:
    id: str
    name: str | None
    scopes: list[Scope]
    tags: dict[str, str]  # it is for machines that have all of them; {}: for the whole account


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What an account may have at most; 0: no limit."""

    machines: int
    awake: int
    memory_mb: int
    disk_mb: int
    requests_per_second: float
    egress_bytes_per_day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange(Request):
    """What is left out stays; 0: no limit, -1: as the server's settings say."""

    machines: int | None = None
    awake: int | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    requests_per_second: float | None = None
    egress_bytes_per_day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    account: str
    email: str | None
    owner: bool
    created_at: str
    token: TokenInUse | None = None
    quota: Quota | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountList:
    accounts: list[Account]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount(Request):
    account_name: str
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountCreated:
    account: str
    token: str  # shown once


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation(Request):
    email: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    invitation: str
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUp(Request):
    email: str
    account_name: str
    invitation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUp:
    account: str
    token: str | None  # shown once; None when it was mailed
    mailed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(Request):
    name: str | None = None
    scopes: list[Scope] | None = None
    expires_at: str | None = None
    tags: dict[str, str] | None = None  # only for machines that have all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    id: str
    name: str | None
    scopes: list[Scope]
    tags: dict[str, str]
    created_at: str
    last_used_at: str | None
    expires_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCreated(Token):
    token: str  # shown once


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenList:
    tokens: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInLink:
    url: str  # good for one log-in
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    account: str
    token: str  # shown once
    url: str  # of the server


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    machines: int
    awake: int
    asleep: int
    broken: int
    instructions: int
    runtime_ms: int
    disk_bytes: int
    egress_bytes: int = 0
    awake_seconds: float = 0.0  # of all machines together
    quota: Quota | None = None
