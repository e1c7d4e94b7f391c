from __future__ import annotations

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
