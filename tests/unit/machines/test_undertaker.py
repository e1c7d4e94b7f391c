"""A machine goes on in a new sandbox only when nothing is left of the one before, whatever it takes to destroy that."""

from __future__ import annotations

import asyncio

import pytest

from everforge.engine.fake import FakeSandbox
from everforge.machines import undertaker
from everforge.wire.errors import SandboxLost, WakeFailed
from kit.house import House, NewMachine

NAME = "twice"


class Stubborn:
    """Sandboxes that cannot be destroyed, until it is said that they can."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_so = True
        self.error: Exception = SandboxLost("no warden answers, and none can be started")
        self.tries = 0
        real = FakeSandbox.destroy

        async def destroy(sandbox: FakeSandbox) -> None:
            self.tries += 1
            if self.is_so:
                raise self.error
            await real(sandbox)

        monkeypatch.setattr(FakeSandbox, "destroy", destroy)


async def left_asleep(house: House, monkeypatch: pytest.MonkeyPatch) -> Stubborn:
    """Its sandbox runs on, although it sleeps."""
    await house.machines.create(NewMachine(name=NAME))
    await house.machines.run(NAME, "x = 1")
    stubborn = Stubborn(monkeypatch)
    await house.machines.hibernate(NAME)
    assert (await house.machines.get(NAME)).state == "asleep"
    assert len(house.host.sandboxes) == 1
    return stubborn


async def test_a_machine_whose_last_sandbox_still_runs_is_not_woken_until_it_is_gone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = await left_asleep(house, monkeypatch)
    (old,) = house.host.sandboxes
    ended = await house.machines.run(NAME, "x")
    assert (ended.end, ended.retry) == ("error", "later")
    assert "could not be destroyed: no warden answers" in (ended.error or "")
    with pytest.raises(WakeFailed):
        await house.machines.rollback(NAME)
    assert list(house.host.sandboxes) == [old], "it lives twice"
    stubborn.is_so = False
    assert (await house.machines.run(NAME, "x")).value == "1"
    assert old not in house.host.sandboxes
    assert len(house.host.sandboxes) == 1


async def test_what_could_not_be_destroyed_goes_although_nobody_asks_for_its_machine(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undertaker, "PAUSE_SECONDS", 0.001)
    stubborn = await left_asleep(house, monkeypatch)
    async with asyncio.timeout(5):
        while stubborn.tries < 3:
            await asyncio.sleep(0.001)
        stubborn.is_so = False
        while house.host.sandboxes:
            await asyncio.sleep(0.001)


async def test_an_error_that_nobody_foresaw_does_not_end_the_tries(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undertaker, "PAUSE_SECONDS", 0.001)
    stubborn = await left_asleep(house, monkeypatch)
    stubborn.error = OSError("too many open files")
    async with asyncio.timeout(5):
        while stubborn.tries < 3:
            await asyncio.sleep(0.001)
        stubborn.is_so = False
        while house.host.sandboxes:
            await asyncio.sleep(0.001)


async def test_a_machine_is_deleted_when_its_last_sandbox_is_gone_too(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = await left_asleep(house, monkeypatch)
    with pytest.raises(WakeFailed):
        await house.machines.delete(NAME)
    stubborn.is_so = False
    await house.machines.delete(NAME)
    assert not house.host.sandboxes
    await house.check_nothing_leaked()


async def test_the_next_server_destroys_what_belongs_to_no_machine(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = await left_asleep(house, monkeypatch)
    stubborn.is_so = False
    await house.restart()
    assert not house.host.sandboxes
    assert (await house.machines.run(NAME, "x")).value == "1"
