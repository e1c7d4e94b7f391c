from __future__ import annotations

from typing import Any

import pytest

from everforge.machines.settings import MachineSettings, check
from everforge.store.base import MachineQuery
from everforge.wire.errors import EverforgeError, InvalidInput, MachineNotFound, NameTaken
from kit.house import House, NewMachine


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": "a/b"},
        {"name": ".."},
        {"name": ""},
        {"name": "A"},
        {"name": "new"},
        {"name": "x" * 64},
        {"name": "-a"},
        {"name": "a\n"},
        {"memory_mb": -1},
        {"memory_mb": 0},
        {"memory_mb": 10**9},
        {"memory_mb": 512.5},
        {"memory_mb": True},
        {"disk_mb": -5},
        {"cpus": 0},
        {"cpus": float("nan")},
        {"cpus": float("inf")},
        {"processes": -3},
        {"idle_seconds": -1.0},
        {"idle_seconds": float("nan")},
        {"history": "always"},
        {"durability": "never"},
        {"tags": {"a": 1}},
        {"tags": {"": "x"}},
        {"tags": {"a": "\ud800"}},
        {"tags": {str(i): "x" for i in range(1000)}},
        {"env": {"A=B": "x"}},
        {"env": {"A": "a\0b"}},
        {"metadata": {"x": float("nan")}},
        {"metadata": {"x": object()}},
        {"metadata": {"x": "y" * 100_000}},
    ],
)
async def test_a_bad_request_for_a_machine_is_refused_and_nothing_is_made(house: House, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await house.machines.create(NewMachine(**wanted))
    assert not await house.machines.list(MachineQuery())
    assert not house.host.sandboxes


@pytest.mark.parametrize(
    "ask",
    [
        {"code": "\ud800"},
        {"code": b"1"},
        {"code": None},
        {"code": "x" * (1024 * 1024 + 1)},
        {"code": "1", "timeout_seconds": -1},
        {"code": "1", "timeout_seconds": float("inf")},
        {"code": "1", "timeout_seconds": "5"},
        {"code": "1", "key": ""},
        {"code": "1", "key": "a\nb"},
    ],
)
async def test_a_bad_instruction_is_refused_and_takes_no_number(house: House, ask: dict[str, Any]) -> None:
    name = (await house.machines.create()).record.name
    with pytest.raises(InvalidInput):
        await house.machines.exec(name, **ask)
    assert (await house.machines.run(name, "1")).instruction == 0


async def test_a_machine_deleted_meanwhile_is_not_found_by_anyone(house: House) -> None:
    name = (await house.machines.create()).record.name
    running, _ = await house.machines.exec(name, "hang()")
    await house.machines.delete(name)
    for ask in (
        house.machines.exec(name, "1"),
        house.machines.result(name, running),
        house.machines.hibernate(name),
        house.machines.wake(name),
        house.machines.fork(name),
        house.machines.snapshot(name),
        house.machines.rollback(name),
        house.machines.reset(name),
        house.machines.delete(name),
        house.machines.update(name, tags={}),
        house.machines.get(name),
    ):
        with pytest.raises(MachineNotFound):
            await ask
    assert not house.host.sandboxes
    await house.check_nothing_leaked()


async def test_a_name_is_given_once_and_again_after_deletion(house: House) -> None:
    await house.machines.create(NewMachine(name="one"))
    with pytest.raises(NameTaken):
        await house.machines.create(NewMachine(name="one"))
    await house.machines.delete("one")
    await house.machines.create(NewMachine(name="one"))
    assert (await house.machines.run("one", "1")).instruction == 0


@pytest.mark.parametrize("count", [0, -1, 101, 1.5, True])
async def test_a_bad_number_of_forks_is_refused(house: House, count: Any) -> None:
    name = (await house.machines.create()).record.name
    with pytest.raises(EverforgeError):
        await house.machines.fork(name, count=count)


async def test_a_disk_is_rounded_up_to_a_size_class(house: House) -> None:
    assert (await house.machines.create(NewMachine(disk_mb=1))).record.disk_mb == 64
    assert (await house.machines.create(NewMachine(disk_mb=777))).record.disk_mb == 1024
    with pytest.raises(InvalidInput, match="51200"):
        await house.machines.create(NewMachine(disk_mb=51_201))


@pytest.mark.parametrize("wrong", [{"memory_mb": 1}, {"disk_mb": 777}, {"idle_seconds": 0}, {"result_bytes_max": 9 * 1024 * 1024}, {"queue_max": 0}])
def test_settings_that_do_not_fit_together_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="settings"):
        check(MachineSettings(**wrong))


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("not me")


@pytest.mark.parametrize("odd", [10**5000, Shy(), float("nan"), True, [], b"x"], ids=["huge", "shy", "nan", "bool", "list", "bytes"])
@pytest.mark.parametrize("field", ["name", "image", "memory_mb", "cpus", "disk_mb", "idle_seconds", "history", "tags", "metadata", "env"])
async def test_whatever_is_asked_for_the_answer_is_an_error_of_ours(house: House, field: str, odd: Any) -> None:
    with pytest.raises(InvalidInput):
        await house.machines.create(NewMachine(**{field: odd}))


@pytest.mark.parametrize("query", [{"limit": float("nan")}, {"limit": True}, {"limit": 0}, {"tags": "x"}])
async def test_a_query_that_makes_no_sense_is_refused(house: House, query: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await house.machines.list(MachineQuery(**query))
