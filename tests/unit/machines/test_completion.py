from __future__ import annotations

import asyncio

import pytest

from everforge.wire.errors import GuestTooOld, InvalidInput
from kit.house import House, NewMachine


async def test_a_live_machine_completes_and_a_busy_one_says_so(house: House) -> None:
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "some_name = 1")
    found = await house.machines.complete(name, "1 + some_")
    assert (found.matches, found.start, found.end, found.busy) == (["some_name"], 4, 9, False)
    number, _ = await house.machines.exec(name, "hang()")
    assert (await house.machines.complete(name, "some_")).busy
    await house.machines.interrupt(name)
    await house.machines.result(name, number)


async def test_a_sleeping_machine_is_woken_to_complete(house: House) -> None:
    name = (await house.machines.create(NewMachine())).record.name
    await house.machines.run(name, "some_name = 1")
    await house.machines.hibernate(name)
    found = await asyncio.gather(*(house.machines.complete(name, "some_") for _ in range(5)))
    assert [f.matches for f in found] == [["some_name"]] * 5


async def test_what_cannot_be_completed_is_refused(house: House) -> None:
    name = (await house.machines.create(NewMachine())).record.name
    for code, cursor in (("x", 2), ("x", -1), (7, 0), ("x", "0")):
        with pytest.raises(InvalidInput):
            await house.machines.complete(name, code, cursor)  # pyright: ignore[reportArgumentType]
    await house.machines.run(name, "1")
    next(iter(house.host.sandboxes.values())).guest.protocol = 1
    await house.machines.hibernate(name)
    with pytest.raises(GuestTooOld):
        await house.machines.complete(name, "x")
