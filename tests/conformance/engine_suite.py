"""What every engine does. Subclass it and give it a `ground` fixture."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import pytest

from everforge.engine.base import Engine, How, Image, Limits, Sandbox
from everforge.wire.errors import EverforgeError, SandboxLost, WakeFailed
from everforge.wire.messages import Go, Hello, Thawed

from .guest_driver import Driver

LIMITS = Limits(memory_mb=512, cpus=2.0, processes=64, disk_mb=128)
END_SECONDS = 30.0


class Ground(Protocol):
    """What an engine stands on in a test, and what only the outside can do to it."""

    @property
    def engine(self) -> Engine: ...

    @property
    def image(self) -> Image: ...

    def new_folder(self) -> Path:
        """An empty folder that a sandbox may be saved into."""
        ...

    async def crash(self, sandbox: Sandbox) -> None:
        """End it from outside, as a fault of the host would."""
        ...

    async def reopen(self) -> Engine:
        """The server goes away and another one comes; the sandboxes stay."""
        ...

    async def leaves_nothing(self) -> None:
        """Asserts that no sandbox is left, nor any trace of one."""
        ...


async def started(ground: Ground, limits: Limits = LIMITS) -> tuple[Sandbox, Driver]:
    sandbox = await ground.engine.start(ground.image, limits)
    driver = Driver(sandbox.link)
    await driver.attach(epoch=1)
    await driver.go()
    return sandbox, driver


async def saved(ground: Ground, sandbox: Sandbox, driver: Driver) -> Path:
    """Its guest is frozen afterwards."""
    folder = ground.new_folder()
    await driver.freeze()
    await sandbox.save(folder)
    return folder


async def restored(ground: Ground, folder: Path, epoch: int = 2) -> tuple[Sandbox, Driver]:
    sandbox = await ground.engine.restore(ground.image, folder, LIMITS)
    driver = Driver(sandbox.link)
    await driver.attach(epoch)
    await driver.go()
    return sandbox, driver


class EngineSuite:
    async def test_a_started_sandbox_answers_over_its_link(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        assert await driver.value("x = 20\nprint('hi')\nx + 1") == "21"
        assert driver.lines == ["hi"]
        assert await sandbox.memory_bytes() > 0
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_an_older_guest_lets_pass_what_only_a_younger_server_says(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.say(60, b'{"not":"invented yet"}')
        await driver.say(Go.kind, b'{"time_ns":1700000000000000000,"entropy":null,"not":"invented yet"}')
        await driver.expect(Thawed)
        assert await driver.value("1 + 1") == "2"
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_a_save_leaves_the_sandbox_running(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.value("x = 1")
        folder = await saved(ground, sandbox, driver)
        assert {file.name for file in folder.iterdir()} >= {"checkpoint.img", "pages.img"}
        await driver.go()
        assert await driver.value("x += 1\nx") == "2"
        again = await saved(ground, sandbox, driver)
        assert any(again.iterdir())
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_a_restored_sandbox_goes_on_from_the_same_state(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.value("x = [1, 2]")
        folder = await saved(ground, sandbox, driver)
        await sandbox.destroy()
        copy, driver = await restored(ground, folder)
        assert await driver.value("x.append(3)\nx") == "[1, 2, 3]"
        assert copy.id != sandbox.id
        await copy.destroy()
        await ground.leaves_nothing()

    async def test_a_restored_guest_says_the_numbers_it_had_and_that_it_is_frozen(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.value("1")
        await driver.value("2")
        folder = await saved(ground, sandbox, driver)
        before = await driver.attach(epoch=1, have=driver.received)
        copy = await ground.engine.restore(ground.image, folder, LIMITS)
        hello = await Driver(copy.link).attach(epoch=2)
        assert (hello.epoch, hello.sent, hello.received, hello.last) == (1, before.sent, before.received, 1)
        assert hello.frozen
        assert hello.running is None
        await asyncio.gather(sandbox.destroy(), copy.destroy())
        await ground.leaves_nothing()

    async def test_a_snapshot_can_be_saved_restored_and_saved_again_many_times(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.value("x = 0")
        for generation in range(1, 4):
            folder = await saved(ground, sandbox, driver)
            await sandbox.destroy()
            sandbox, driver = await restored(ground, folder, epoch=generation + 1)
            assert await driver.value("x += 1\nx") == str(generation)
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_many_copies_of_one_snapshot_live_side_by_side(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.value("x = 5")
        folder = await saved(ground, sandbox, driver)
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        copies = await asyncio.gather(*(restored(ground, folder) for _ in range(4)))
        await asyncio.gather(*(driver.value(f"x += {n}") for n, (_, driver) in enumerate(copies)))
        assert [await driver.value("x") for _, driver in copies] == ["5", "6", "7", "8"]
        await driver.go()
        assert await driver.value("x") == "5"
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
        await asyncio.gather(sandbox.destroy(), *(copy.destroy() for copy, _ in copies))
        await ground.leaves_nothing()

    async def test_destroying_twice_is_fine_and_is_told_as_destroyed(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await asyncio.gather(sandbox.destroy(), sandbox.destroy())
        await sandbox.destroy()
        assert (await sandbox.ended()).how is How.DESTROYED
        with pytest.raises(SandboxLost):
            await driver.run("1")
        with pytest.raises(EverforgeError):
            await sandbox.save(ground.new_folder())
        await ground.leaves_nothing()

    async def test_a_crash_is_told_to_everyone_who_waits_for_the_end(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        waiting = [asyncio.create_task(sandbox.ended()) for _ in range(3)]
        await driver.begin("__import__('time').sleep(0)")
        await ground.crash(sandbox)
        async with asyncio.timeout(END_SECONDS):
            endings = await asyncio.gather(*waiting)
        assert {ending.how for ending in endings} <= {How.KILLED, How.EXITED}
        assert (await sandbox.ended()) == endings[0]
        with pytest.raises(SandboxLost):
            await driver.expect(Hello)  # after everything that was still on its way
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_survivors_of_a_server_are_handed_to_the_next(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        gone, _ = await started(ground)
        await gone.destroy()
        await driver.value("x = 7")
        have = driver.received
        engine = await ground.reopen()
        survivors = await engine.survivors()
        assert list(survivors) == [sandbox.id]
        found = survivors[sandbox.id]
        driver = Driver(found.link)
        hello = await driver.attach(epoch=1, have=have)
        assert (hello.epoch, hello.last) == (1, 0)
        assert await driver.value("x + 1") == "8"
        folder = await saved(ground, found, driver)
        await found.destroy()
        assert (await found.ended()).how is How.DESTROYED
        copy, driver = await restored(ground, folder)
        assert await driver.value("x") == "7"
        await copy.destroy()
        assert not await engine.survivors()
        await ground.leaves_nothing()

    @pytest.mark.parametrize("damage", ["empty folder", "no folder", "cut", "garbage"])
    async def test_a_damaged_snapshot_is_refused_and_nothing_is_left_behind(self, ground: Ground, damage: str) -> None:
        sandbox, driver = await started(ground)
        folder = await saved(ground, sandbox, driver)
        await sandbox.destroy()
        _damage(folder, damage)
        with pytest.raises(EverforgeError):
            await ground.engine.restore(ground.image, folder, LIMITS)
        assert not await ground.engine.survivors()
        await ground.leaves_nothing()

    async def test_a_link_that_was_closed_can_be_opened_again(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        await driver.value("x = 3")
        have = driver.received
        sandbox.link.close()
        engine = await ground.reopen()
        driver = Driver((await engine.survivors())[sandbox.id].link)
        await driver.attach(epoch=1, have=have)
        assert await driver.value("x") == "3"
        await (await engine.survivors())[sandbox.id].destroy()
        await ground.leaves_nothing()

    async def test_what_a_build_saved_that_is_not_at_hand_is_refused(self, ground: Ground) -> None:
        sandbox, driver = await started(ground)
        assert sandbox.build == ground.engine.build
        assert await ground.engine.knows(sandbox.build)
        folder = await saved(ground, sandbox, driver)
        assert not await ground.engine.knows("another")
        with pytest.raises(WakeFailed):
            await ground.engine.restore(ground.image, folder, LIMITS, "another")
        restored = await ground.engine.restore(ground.image, folder, LIMITS, sandbox.build)
        assert restored.build == sandbox.build
        await restored.destroy()
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_the_probe_is_live_and_leaves_nothing(self, ground: Ground) -> None:
        probe = await ground.engine.probe(ground.image)
        assert probe.fit, probe
        assert probe.engine == ground.engine.name
        assert probe.build == ground.engine.build
        await ground.leaves_nothing()


def _damage(folder: Path, how: str) -> None:
    for file in folder.iterdir():
        if how in ("empty folder", "no folder"):
            file.unlink()
        elif file.name == "checkpoint.img":
            data = file.read_bytes()
            file.write_bytes(data[: len(data) // 2] if how == "cut" else bytes(len(data)))
    if how == "no folder":
        folder.rmdir()
