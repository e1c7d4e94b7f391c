"""What every store does about quotas and usage. Subclass it and give it a `store` fixture."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from everforge.store.accounts import AccountRecord
from everforge.store.base import Change, Store
from everforge.store.quotas import Quota, QuotaRecord
from everforge.wire.errors import AccountNotFound, QuotaExceeded
from everforge.wire.ids import AccountId

from .store_suite import A, key_of, machine, point

MB = 1024 * 1024


async def refused(work: Any) -> bool:
    try:
        await work
    except QuotaExceeded:
        return True
    return False


class QuotaSuite:
    async def test_two_at_once_never_pass_a_quota_of_one(self, store: Store) -> None:
        one = Quota(machines=1)
        ends = await asyncio.gather(*(refused(store.create(machine(f"m{n}"), quota=one)) for n in range(20)))
        assert ends.count(False) == 1
        assert sum((await store.usage(A)).residences.values()) == 1
        await store.create(machine("another", account=AccountId("b")), quota=one)

    async def test_forks_count_together_and_come_all_or_none(self, store: Store) -> None:
        source = machine("source")
        await store.create(source)

        def forks(*names: str) -> Any:
            made = [machine(name, source=source.id, source_position=-1) for name in names]
            return store.create_together([(r, [], point(r, 0)) for r in made], quota=Quota(machines=3))

        assert await refused(forks("a", "b", "c"))
        assert not await refused(forks("a", "b"))
        assert await refused(forks("d"))
        assert sum((await store.usage(A)).residences.values()) == 3

    async def test_a_deleted_machine_leaves_its_place_and_a_refused_one_leaves_nothing(self, store: Store) -> None:
        first, second = machine("first"), machine("second")
        await store.create(first, quota=Quota(machines=1))
        assert await refused(store.create(second, key=key_of("k", second), quota=Quota(machines=1)))
        assert await store.made_with_key(A, "create", "k") is None
        await store.commit(Change(machine=first.id, set={"residence": "deleted", "deleted_at": 2.0}))
        assert not await refused(store.create(second, key=key_of("k", second), quota=Quota(machines=1)))

    async def test_snapshots_beyond_the_disk_keep_new_machines_away(self, store: Store) -> None:
        first = machine("first")
        await store.create(first, points=[point(first, 0, size_bytes=3 * MB)], quota=Quota(disk_mb=3))
        assert await refused(store.create(machine("second"), quota=Quota(disk_mb=3)))
        assert not await refused(store.create(machine("second"), quota=Quota(disk_mb=4)))

    async def test_time_awake_and_egress_are_counted_and_outlive_machines(self, store: Store) -> None:
        first = machine("first", awake_since=time.time() - 100)
        await store.create(first)
        await store.create(machine("asleep", residence="asleep"))
        assert 99_000 < (await store.usage(A)).awake_ms < 200_000
        await store.commit(Change(machine=first.id, set={"residence": "deleted", "awake_since": None, "deleted_at": 2.0}, awake_ms=70_000))
        await store.add_egress(A, 5)
        await store.add_egress(A, 7)
        usage = await store.usage(A)
        assert (usage.awake_ms, usage.egress_bytes, usage.instructions) == (70_000, 12, 0)

    async def test_what_was_set_for_an_account_is_kept_until_the_account_goes(self, store: Store) -> None:
        ada = AccountRecord(id=AccountId("ada"), name="ada", created_at=1.0)
        quota = QuotaRecord(machines=3, requests_per_second=0.5, awake=0)
        with pytest.raises(AccountNotFound):
            await store.accounts.change_quota(ada.id, {"machines": 3})
        await store.accounts.add_account(ada)
        assert await store.accounts.quota(ada.id) == QuotaRecord()
        await store.accounts.change_quota(ada.id, {"machines": 3, "memory_mb": 1})
        assert await store.accounts.change_quota(ada.id, {"memory_mb": None, "requests_per_second": 0.5, "awake": 0}) == quota
        assert await store.accounts.quota(ada.id) == quota
        assert await store.accounts.quotas() == {ada.id: quota}
        assert quota.over(Quota(machines=9, awake=9, disk_mb=9)) == Quota(machines=3, awake=0, disk_mb=9, requests_per_second=0.5)
        await store.accounts.delete_account(ada.id, 2.0)
        assert await store.accounts.quotas() == {}

    async def test_changes_at_once_all_count(self, store: Store) -> None:
        ada = AccountRecord(id=AccountId("ada"), name="ada", created_at=1.0)
        await store.accounts.add_account(ada)
        values = {"machines": 1, "awake": 2, "memory_mb": 3, "disk_mb": 4, "requests_per_second": 5.0, "egress_bytes_per_day": 6}
        await asyncio.gather(*(store.accounts.change_quota(ada.id, {name: value}) for name, value in values.items()))
        assert await store.accounts.quota(ada.id) == QuotaRecord(**values)
