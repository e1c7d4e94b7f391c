"""Idempotency keys of create and fork, on the store in memory and on the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everforge.machines import keys
from everforge.store.base import MachineQuery
from everforge.store.sql.store import SqlStore
from everforge.wire.errors import InvalidInput, KeyReused, MachineNotFound, NameTaken
from everforge.wire.ids import AccountId
from kit.house import House, NewMachine


@pytest.fixture(params=["memory", "sql"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    store = await SqlStore.open(tmp_path / "store.db") if request.param == "sql" else None
    house = House(store=store)
    await house.start()
    yield house
    await house.close()
    if store is not None:
        await store.close()


async def count(house: House) -> int:
    return len(await house.machines.list(MachineQuery()))


async def test_a_creation_that_comes_again_is_the_same_machine_also_after_a_restart(house: House) -> None:
    wanted = NewMachine(tags={"k": "v"}, memory_mb=256)
    first = await house.machines.create(wanted, key="k")
    again = await house.machines.create(wanted, key="k")
    await house.restart()
    later = await house.machines.create(NewMachine(tags={"k": "v"}, memory_mb=256), key="k")
    assert first.record.id == again.record.id == later.record.id
    assert await count(house) == 1


async def test_creations_at_once_with_one_key_make_one_machine(house: House) -> None:
    made = await asyncio.gather(*(house.machines.create(NewMachine(name="one"), key="k") for _ in range(5)))
    assert len({view.record.id for view in made}) == 1
    assert await count(house) == 1


async def test_another_request_with_the_same_key_is_refused(house: House) -> None:
    source = (await house.machines.create(NewMachine(tags={"k": "v"}), key="k")).record.name
    for other in (NewMachine(), NewMachine(tags={"k": "w"}), NewMachine(tags={"k": "v"}, cpus=1.0)):
        with pytest.raises(KeyReused):
            await house.machines.create(other, key="k")
    await house.machines.fork(source, key="k")  # another route
    with pytest.raises(KeyReused):
        await house.machines.fork(source, count=2, key="k")
    with pytest.raises(KeyReused):
        await house.machines.fork(source, names=["a"], key="k")
    await house.machines.of(AccountId("other")).create(key="k")
    assert await count(house) == 2


async def test_a_fork_that_comes_again_is_the_same_machines(house: House) -> None:
    source = (await house.machines.create()).record.name
    await house.machines.run(source, "x = 1")
    first = await house.machines.fork(source, names=["a", "b"], key="k")
    await house.machines.run(source, "x = 2")
    await house.restart()
    again = await house.machines.fork(source, names=["a", "b"], key="k")
    assert [view.record.id for view in first] == [view.record.id for view in again]
    assert (await house.machines.run("a", "x")).value == "1"
    assert await count(house) == 3
    with pytest.raises(NameTaken):
        await house.machines.fork(source, names=["a", "b"], key="another")


async def test_what_was_refused_uses_up_no_key(house: House) -> None:
    await house.machines.create(NewMachine(name="taken"))
    with pytest.raises(NameTaken):
        await house.machines.create(NewMachine(name="taken"), key="k")
    await house.machines.create(NewMachine(name="free"), key="k")


async def test_a_key_is_forgotten_after_a_day(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await house.machines.create(key="k")
    monkeypatch.setattr(keys, "KEPT_SECONDS", -1.0)
    monkeypatch.setattr(keys, "PRUNE_SECONDS", 0.0)
    await house.machines.create(key="other")
    assert (await house.machines.create(key="k")).record.id != first.record.id


async def test_a_machine_made_with_a_key_and_deleted_since_is_not_made_again(house: House) -> None:
    first = await house.machines.create(key="k")
    await house.machines.delete(first.record.name)
    assert (await house.machines.create(key="k")).state == "deleted"
    await house.store.purge(first.record.id)
    with pytest.raises(MachineNotFound):
        await house.machines.create(key="k")
    assert await count(house) == 0


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", 5])
async def test_a_key_that_is_none_is_refused(house: House, key: Any) -> None:
    with pytest.raises(InvalidInput):
        await house.machines.create(key=key)
    assert await count(house) == 0


async def test_a_sleeping_machine_is_forked_however_long_it_takes_to_look_the_key_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.machines.create(NewMachine(name="source"))
    await house.machines.run("source", "1")
    await house.machines.hibernate("source")
    quick = house.machines.forge.store.made_with_key

    async def slow(*args: Any) -> Any:
        await asyncio.sleep(0.1)  # longer than an idle keeper stays
        return await quick(*args)

    monkeypatch.setattr(house.machines.forge.store, "made_with_key", slow)
    [fork] = await house.machines.fork("source", names=["copy"], key="k")
    assert fork.record.name == "copy"
