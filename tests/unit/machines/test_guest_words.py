"""What a guest says, and what a hostile one might."""

from __future__ import annotations

import time

import pytest

from everforge.wire.errors import SaveFailed
from everforge.wire.messages import CannotFreeze
from kit.house import House, NewMachine


async def new(house: House) -> str:
    return (await house.machines.create(NewMachine())).record.name


async def test_a_guest_that_cannot_freeze_fails_the_save_at_once_and_the_machine_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    with monkeypatch.context() as patch:
        patch.setattr("everforge.engine.fake.Frozen", lambda token: CannotFreeze(token, "process 7 (cat) could not be stopped"))  # pyright: ignore
        began = time.monotonic()
        with pytest.raises(SaveFailed, match=r"process 7 \(cat\) could not be stopped"):
            await house.machines.hibernate(name)
        with pytest.raises(SaveFailed, match=r"process 7 \(cat\)"):
            await house.machines.snapshot(name)
        assert time.monotonic() - began < house.settings.guest_answer_seconds
        assert (await house.machines.get(name)).state == "ready"
        assert (await house.machines.run(name, "x")).value == "1"
    await house.machines.hibernate(name)
    assert (await house.machines.run(name, "x")).value == "1"


async def test_an_answer_to_an_earlier_freeze_counts_for_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from everforge.engine.fake import FakeSandbox

    say = FakeSandbox._say  # pyright: ignore[reportPrivateUsage]

    def say_old_first(sandbox: FakeSandbox, message: object) -> None:
        if type(message).__name__ == "Frozen":
            say(sandbox, CannotFreeze(0, "long ago"))
        say(sandbox, message)  # pyright: ignore[reportArgumentType]

    name = await new(house)
    await house.machines.run(name, "x = 1")
    monkeypatch.setattr(FakeSandbox, "_say", say_old_first)
    await house.machines.hibernate(name)
    assert (await house.machines.get(name)).state == "asleep"
