"""The way out of machines: policies, and what was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .base import Request

Egress = Literal["none", "list", "packages", "public"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    egress: Egress
    egress_allow: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressDefault(Request):
    """Nothing at all: the server's own default again."""

    egress: Egress | None = None
    egress_allow: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressChange(Request):
    egress: Egress | None = None
    allow: list[str] | None = None  # rules to add, and
    deny: list[str] | None = None  # to take away


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressAttempt:
    number: int  # give it as `before` for older ones
    time: str
    host: str
    port: int
    speech: str  # http, tls, tcp
    method: str
    path: str
    verdict: Literal["pending", "allowed", "refused", "failed"]
    why: str
    allowed_by: str
    address: str
    sent_bytes: int
    received_bytes: int
    secrets: list[str]  # names of those that were put in
    ended_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLog:
    attempts: list[EgressAttempt]  # newest first
    next: int | None
