"""The recovery matrix, cell by cell: what the record said, what became of the sandbox, and what the next server makes of it."""

from __future__ import annotations

import pytest

from everforge.machines.lifecycle import Residence
from everforge.machines.recover import MATRIX, Action, Guest
from everforge.store.base import Change
from everforge.wire.errors import MachineNotFound
from everforge.wire.events import Lost
from kit.house import House, NewMachine

NAME = "cell"
SAVED, SINCE = "'saved'", "'since'"


async def left_as(house: House, residence: Residence, guest: Guest) -> str:
    """A machine with a snapshot and something newer in memory, whose server was killed in that state; returns its sandbox."""
    await house.machines.create(NewMachine(name=NAME))
    await house.machines.run(NAME, f"x = {SAVED}")
    await house.machines.snapshot(NAME)
    await house.machines.run(NAME, f"x = {SINCE}")
    record = (await house.machines.get(NAME)).record
    await house.kill()
    assert record.sandbox is not None
    if guest is Guest.GONE:
        house.host.lose_everything()
    else:
        house.host.sandboxes[record.sandbox].guest.frozen = guest is Guest.FROZEN
    claimed = residence not in (Residence.ASLEEP, Residence.BROKEN)
    await house.store.commit(Change(machine=record.id, set={"residence": str(residence), "sandbox": record.sandbox if claimed else None}))
    return record.sandbox


@pytest.mark.parametrize(("residence", "guest"), MATRIX, ids=[f"{r}-{g}" for r, g in MATRIX])
async def test_cell(house: House, residence: Residence, guest: Guest) -> None:
    sandbox = await left_as(house, residence, guest)
    await house.start()
    action, _ = MATRIX[residence, guest]
    if action is Action.DELETE:
        with pytest.raises(MachineNotFound):
            await house.machines.get(NAME)
        assert not house.host.sandboxes
        return
    if residence is Residence.BROKEN:
        assert (await house.machines.get(NAME)).state == "broken"
        assert not house.host.sandboxes
        return
    ended = await house.machines.run(NAME, "x")
    if action is Action.TAKE_OVER:
        assert ended.value == SINCE
        assert list(house.host.sandboxes) == [sandbox]
    else:
        assert ended.value == SAVED
        assert sandbox not in house.host.sandboxes
    lost = [e async for e in house.machines.read(NAME) if isinstance(e, Lost)]
    assert bool(lost) == (action is Action.LOSE)
    assert ("lost" in (ended.note or "")) == (action is Action.LOSE)
    assert len(house.host.sandboxes) == 1
    await house.check_nothing_leaked()
