"""What an account may have at most. 0 means without limit, everywhere."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

from everforge.wire.errors import QuotaExceeded
from everforge.wire.ids import AccountId

MB = 1024 * 1024
RETRY_SECONDS = 60  # time alone rarely helps: clients that try again by themselves should rather say so


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    machines: int = 0  # awake or asleep
    awake: int = 0  # at once
    memory_mb: int = 0  # limits of those that are awake, added up
    disk_mb: int = 0  # snapshots, as they were saved
    requests_per_second: float = 0.0
    egress_bytes_per_day: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRecord:
    """As the owner of the server set it for one account; None: as the settings say."""

    machines: int | None = None
    awake: int | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    requests_per_second: float | None = None
    egress_bytes_per_day: int | None = None

    def over(self, default: Quota) -> Quota:
        set_here = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        return Quota(**{f.name: getattr(default, f.name) for f in fields(default)} | set_here)


UNLIMITED = Quota()


class Quotas(Protocol):
    async def of(self, account: AccountId) -> Quota: ...


class NoQuotas:
    async def of(self, account: AccountId) -> Quota:
        return UNLIMITED


def check_new(quota: Quota, machines: int, adding: int, disk_bytes: int) -> None:
    """May an account that has so many machines, and uses so much disk, have more? Raises QuotaExceeded."""
    if quota.machines and machines + adding > quota.machines:
        raise exceeded("machines", quota.machines, f"this account may have {quota.machines} machines and has {machines}: delete one")
    check_disk(quota, disk_bytes)


def check_disk(quota: Quota, disk_bytes: int) -> None:
    if quota.disk_mb and disk_bytes >= quota.disk_mb * MB:
        has = f"its snapshots take {disk_bytes // MB} MB of {quota.disk_mb}"
        raise exceeded("disk_mb", quota.disk_mb, f"this account has no disk left, {has}: delete machines or snapshots")


def exceeded(limit: str, most: float, message: str) -> QuotaExceeded:
    advice = f"{message}, or ask the owner of the server for more"
    return QuotaExceeded(advice, limit=limit, quota=most, retry_after_seconds=RETRY_SECONDS)
