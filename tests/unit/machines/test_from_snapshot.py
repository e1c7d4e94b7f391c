"""A new machine from a kept point of another one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from everforge.machines.requests import SnapshotOf
from everforge.wire.errors import InvalidInput, MachineNotFound, SnapshotNotFound
from everforge.wire.events import Accepted, Ended
from everforge.wire.ids import AccountId
from kit.house import House, NewMachine


async def source_with_past(house: House) -> str:
    """x is 'then' in the snapshot named `then`, and 'now'."""
    name = (await house.machines.create(NewMachine(memory_mb=512, tags={"of": "source"}))).record.name
    await house.machines.run(name, "x = 'then'")
    await house.machines.snapshot(name, "then")
    await house.machines.run(name, "x = 'now'")
    return name


async def test_it_goes_on_from_there_and_the_other_from_where_it_is(house: House) -> None:
    source = await source_with_past(house)
    made = await house.machines.create(NewMachine(from_snapshot=SnapshotOf(source, "then"), tags={"a": "b"}, cpus=1.5))
    name = made.record.name
    assert (await house.machines.run(name, "x")).value == "'then'"
    assert (await house.machines.run(source, "x")).value == "'now'"
    assert (made.record.memory_mb, made.record.cpus, made.record.tags) == (512, 1.5, {"a": "b"})
    assert (await house.machines.facts(name)).source == source


async def test_its_tape_begins_as_the_others_did_and_nothing_on_it_waits_for_ever(house: House) -> None:
    name = (await house.machines.create(NewMachine(history="each"))).record.name
    await house.machines.hibernate(name)
    numbers = [(await house.machines.exec(name, f"x = {n}"))[0] for n in range(3)]  # all accepted before the first point is taken
    await house.machines.result(name, numbers[-1])
    points = await house.machines.points(name)
    first = next(p for p in points if p.instruction == numbers[0])
    made = (await house.machines.create(NewMachine(from_snapshot=SnapshotOf(name, first.snapshot)))).record.name
    assert (await house.machines.run(made, "x")).value == "0"
    tape = [event async for event in house.machines.read(made)]
    accepted = [event.instruction for event in tape if isinstance(event, Accepted)]
    ended = {event.instruction: event.end for event in tape if isinstance(event, Ended)}
    assert accepted[:3] == numbers
    assert sorted(ended) == sorted(accepted)
    assert [ended[number] for number in numbers] == ["value", "cancelled", "cancelled"]


async def test_from_its_first_point_it_begins_anew(house: House) -> None:
    source = await source_with_past(house)
    beginning = (await house.machines.points(source))[0]
    made = await house.machines.create(NewMachine(from_snapshot=SnapshotOf(source, beginning.snapshot)))
    assert (await house.machines.run(made.record.name, "x")).end == "error"


async def test_it_outlives_the_machine_it_came_from(house: House) -> None:
    source = await source_with_past(house)
    made = await house.machines.create(NewMachine(from_snapshot=SnapshotOf(source, "then"), expires_at=time.time() + 1000), key="k")
    await house.machines.delete(source)
    assert (await house.machines.run(made.record.name, "x")).value == "'then'"
    assert made.record.expires_at is not None
    again = await house.machines.create(NewMachine(from_snapshot=SnapshotOf(source, "then"), expires_at=made.record.expires_at), key="k")
    assert again.record.id == made.record.id
    await house.check_nothing_leaked()


async def test_the_snapshots_of_others_are_not_there(house: House) -> None:
    source = await source_with_past(house)
    other = house.machines.of(AccountId("other"))
    with pytest.raises(MachineNotFound):
        await other.create(NewMachine(from_snapshot=SnapshotOf(source, "then")))


@pytest.mark.parametrize("wanted", [{"image": "minimal"}, {"disk_mb": 64}, {"env": {"A": "b"}}])
async def test_what_only_a_beginning_can_have_is_refused(house: House, wanted: dict[str, Any]) -> None:
    source = await source_with_past(house)
    with pytest.raises(InvalidInput, match=next(iter(wanted))):
        await house.machines.create(NewMachine(from_snapshot=SnapshotOf(source, "then"), **wanted))


async def test_a_snapshot_that_is_not_there_is_said_so(house: House) -> None:
    source = await source_with_past(house)
    with pytest.raises(SnapshotNotFound):
        await house.machines.create(NewMachine(from_snapshot=SnapshotOf(source, "never")))
    bad: list[Any] = [SnapshotOf("UPPER", "then"), SnapshotOf(source, ""), "then", ("a", "b")]
    for nonsense in bad:
        with pytest.raises(InvalidInput):
            await house.machines.create(NewMachine(from_snapshot=nonsense))
