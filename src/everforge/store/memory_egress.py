"""The egress book in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everforge.wire.errors import TooMany
from everforge.wire.ids import AccountId, MachineId

from .egress import AttemptRecord, SecretRecord


class MemoryEgress:
    def __init__(self) -> None:
        self._attempts: dict[MachineId, dict[int, AttemptRecord]] = {}
        self._defaults: dict[AccountId, Mapping[str, Any]] = {}
        self._secrets: dict[tuple[AccountId, str], SecretRecord] = {}

    async def note(self, attempts: Sequence[AttemptRecord], keep: int) -> None:
        for attempt in attempts:
            self._attempts.setdefault(attempt.machine, {})[attempt.number] = attempt
        for machine in {attempt.machine for attempt in attempts}:
            found = self._attempts[machine]
            for number in sorted(found)[: max(0, len(found) - keep)]:
                del found[number]

    async def attempts(self, machine: MachineId, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        found = self._attempts.get(machine, {})
        return [found[number] for number in sorted(found, reverse=True) if before is None or number < before][:limit]

    def forget(self, machine: MachineId) -> None:
        self._attempts.pop(machine, None)

    async def default(self, account: AccountId) -> Mapping[str, Any] | None:
        return self._defaults.get(account)

    async def set_default(self, account: AccountId, policy: Mapping[str, Any] | None) -> None:
        self._defaults.pop(account, None)
        if policy is not None:
            self._defaults[account] = policy

    async def secrets(self, account: AccountId) -> Sequence[SecretRecord]:
        return [secret for (owner, _), secret in sorted(self._secrets.items()) if owner == account]

    async def put_secret(self, secret: SecretRecord, at_most: int) -> None:
        key = secret.account, secret.name
        if key not in self._secrets and len(await self.secrets(secret.account)) >= at_most:
            raise TooMany(f"an account has {at_most} secrets at most; delete one that is no longer used")
        self._secrets[key] = secret

    async def delete_secret(self, account: AccountId, name: str) -> bool:
        return self._secrets.pop((account, name), None) is not None

    def forget_account(self, account: AccountId) -> None:
        self._defaults.pop(account, None)
        self._secrets = {key: secret for key, secret in self._secrets.items() if key[0] != account}
