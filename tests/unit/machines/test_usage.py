from __future__ import annotations

from everforge.store.base import Change
from everforge.wire.ids import AccountId
from kit.house import House


async def test_an_account_sees_what_it_uses_and_nothing_of_others(house: House) -> None:
    other = house.machines.of(AccountId("other"))
    await other.run((await other.create()).record.name, "1")
    first, second = [(await house.machines.create()).record.name for _ in range(2)]
    await house.machines.run(first, "1")
    await house.machines.run(second, "2")
    await house.machines.hibernate(first)
    usage = await house.machines.usage()
    assert (usage.machines, usage.awake, usage.asleep, usage.broken, usage.instructions) == (2, 1, 1, 0, 2)
    assert usage.disk_bytes == sum(p.size_bytes for p in await house.machines.points(first)) > 0
    await house.machines.delete(first)
    usage = await house.machines.usage()
    assert (usage.machines, usage.instructions, usage.disk_bytes) == (1, 2, 0)
    assert (await other.usage()).instructions == 1


async def test_the_time_that_a_computer_was_off_is_not_counted_as_awake(house: House) -> None:
    name = (await house.machines.create()).record.name
    await house.machines.run(name, "1")
    record = (await house.machines.get(name)).record
    hours = 10 * 3600.0
    await house.kill()
    house.host.lose_everything()
    assert record.awake_since is not None
    before = {"awake_since": record.awake_since - hours, "last_used_at": record.awake_since - hours + 7.0}
    await house.store.commit(Change(machine=record.id, set=before))  # as if it had been ten hours ago
    machines = await house.start()
    assert (await machines.usage()).awake_seconds == 7.0


async def test_the_time_that_a_machine_outlives_its_server_counts(house: House) -> None:
    name = (await house.machines.create()).record.name
    await house.machines.run(name, "1")
    record = (await house.machines.get(name)).record
    await house.kill()
    assert record.awake_since is not None
    await house.store.commit(Change(machine=record.id, set={"awake_since": record.awake_since - 100.0}))
    machines = await house.start()
    await machines.hibernate(name)
    assert (await machines.usage()).awake_seconds > 100.0


async def test_machines_of_all_accounts_are_counted_by_state(house: House) -> None:
    other = house.machines.of(AccountId("other"))
    busy, asleep = (await other.create()).record.name, (await house.machines.create()).record.name
    await other.run(busy, "1")
    await house.machines.run(asleep, "1")
    await house.machines.hibernate(asleep)
    assert {k: v for k, v in (await house.machines.counts()).items() if v} == {"ready": 1, "asleep": 1}
    running, _ = await other.exec(busy, "print('begun')\nsleep(60)")
    async for event in other.read(busy, follow=True):
        if event.kind == "output":
            break
    assert {k: v for k, v in (await house.machines.counts()).items() if v} == {"busy": 1, "asleep": 1}
    await other.interrupt(busy)
    await other.result(busy, running)
