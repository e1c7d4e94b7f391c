"""The seam between machines and their way out. What may pass is decided behind it; machines only say when a door opens and closes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from everforge.store.base import MachineRecord
from everforge.store.egress import AttemptRecord
from everforge.wire.errors import InvalidInput
from everforge.wire.ids import AccountId, MachineId


class Surroundings(NamedTuple):
    env: Mapping[str, str]
    files: Mapping[str, str]  # by the names of guest.etc


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """None and nothing: as it is."""

    word: str | None = None
    allow: Sequence[str] | None = None  # in place of all rules
    add: Sequence[str] = ()
    remove: Sequence[str] = ()


class Door(Protocol):
    """Of one machine, while it is awake."""

    def begin(self, nonce: bytes) -> None:
        """A porter is about to speak, its first words a marker with this nonce. Whatever was open before is cut."""
        ...

    def reconsider(self) -> None:
        """The policy was changed: what is open and would no longer be allowed is cut."""
        ...

    async def close(self) -> None: ...


class Doors(Protocol):
    def open(self, sock: socket.socket, record: Callable[[], MachineRecord]) -> Door:
        """`sock` is the door's to close. The record is asked anew for every attempt: what is changed counts at once."""
        ...

    async def new_policy(self, account: AccountId, word: str | None, allow: Sequence[str] | None) -> Mapping[str, Any]:
        """Of a new machine, as it is recorded: what was asked for, or the account's default, or the server's. Raises InvalidInput."""
        ...

    def changed_policy(self, present: Mapping[str, Any], change: PolicyChange) -> Mapping[str, Any]:
        """Of a machine that is there. Raises InvalidInput."""
        ...

    async def surroundings(self, record: MachineRecord) -> Surroundings:
        """What the guest must know of the world outside. Asked before its door is opened."""
        ...

    async def log(self, machine: MachineId, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        """What it has tried to reach, newest first. Raises InvalidInput."""
        ...

    async def close(self) -> None: ...


class NoDoors:
    """Machines without a way out."""

    def open(self, sock: socket.socket, record: Callable[[], MachineRecord]) -> Door:
        sock.close()
        return _Closed()

    async def new_policy(self, account: AccountId, word: str | None, allow: Sequence[str] | None) -> Mapping[str, Any]:
        return self.changed_policy({}, PolicyChange(word, allow))

    def changed_policy(self, present: Mapping[str, Any], change: PolicyChange) -> Mapping[str, Any]:
        if change.word not in (None, "none") or change.allow or change.add:
            raise InvalidInput("machines of this server have no way out: their egress is none")
        return {}

    async def surroundings(self, record: MachineRecord) -> Surroundings:
        return Surroundings({}, {})

    async def log(self, machine: MachineId, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        return []

    async def close(self) -> None: ...


class _Closed:
    def begin(self, nonce: bytes) -> None: ...

    def reconsider(self) -> None: ...

    async def close(self) -> None: ...
