"""What is kept of the way out of machines: what they have tried to reach, what an account's new machines may, and its secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from everforge.wire.ids import AccountId, MachineId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    machine: MachineId
    number: int  # grows within a machine; the time in microseconds, as a rule
    host: str
    port: int
    speech: str  # http, tls, tcp
    method: str
    path: str
    verdict: str  # allowed, refused, failed
    why: str
    allowed_by: str
    address: str
    sent_bytes: int
    received_bytes: int
    secrets: str  # names of those that were put in, a space between
    began_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRecord:
    """A value that machines use and never see."""

    account: AccountId
    name: str
    placeholder: str  # what the machine has in its place
    sealed: str  # the value, encrypted
    hosts: Sequence[str]  # host, or host:port
    header: str  # a header that is put in by itself, {} where the value goes; "": none is
    places: Sequence[str]  # beside headers: body, url
    created_at: float
    changed_at: float


class EgressBook(Protocol):
    async def note(self, attempts: Sequence[AttemptRecord], keep: int) -> None:
        """New ones, and what became of those that were noted before. Of each machine the newest `keep` stay."""
        ...

    async def attempts(self, machine: MachineId, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        """Newest first, those with a number below `before`."""
        ...

    async def default(self, account: AccountId) -> Mapping[str, Any] | None:
        """What new machines of the account may reach, where it has said so."""
        ...

    async def set_default(self, account: AccountId, policy: Mapping[str, Any] | None) -> None: ...

    async def secrets(self, account: AccountId) -> Sequence[SecretRecord]:
        """By name."""
        ...

    async def put_secret(self, secret: SecretRecord, at_most: int) -> None:
        """A new one, or in place of the one of that name. Raises TooMany."""
        ...

    async def delete_secret(self, account: AccountId, name: str) -> bool:
        """Was it there?"""
        ...
