"""Images are looked at again behind everything else; what is found keeps their machines from waking."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from everforge.wire.errors import ImageDamaged, WakeFailed
from kit.house import FAKE_IMAGE, House, NewMachine, quick

WRONG = "the image fake-image is not what it was built as"
OFTEN = quick(image_scrub_first_seconds=0.01, image_scrub_hours=0.01 / 3600)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House(OFTEN)
    await house.start()
    yield house
    await house.machines.forge.stop(hibernate=False)
    await house.close()


async def look(house: House) -> None:
    """From the beginning of a round to its end, and what follows of it."""
    async with asyncio.timeout(5):
        while not house.images.scrubbed.empty():
            house.images.scrubbed.get_nowait()
        for _ in range(2):
            assert await house.images.scrubbed.get() == FAKE_IMAGE.digest


async def test_the_images_of_machines_are_looked_at_again_and_again(house: House) -> None:
    assert house.images.scrubbed.empty(), "nobody uses it yet"
    await house.machines.create(NewMachine(name="one"))
    await look(house)
    await look(house)


async def test_a_damaged_image_is_said_in_the_log_and_its_machines_are_not_woken_until_it_is_mended(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("asleep", "awake"):
        await house.machines.create(NewMachine(name=name))
        await house.machines.run(name, "x = 1")
    await house.machines.hibernate("asleep")
    house.images.wrong = WRONG
    await look(house)
    assert any(r.levelno == logging.ERROR and WRONG in r.getMessage() for r in caplog.records)
    with pytest.raises(WakeFailed, match=WRONG):
        await house.machines.wake("asleep")
    assert (await house.machines.get("asleep")).state == "asleep"
    with pytest.raises(ImageDamaged, match=WRONG):
        await house.machines.create(NewMachine(name="fresh"))
    assert (await house.machines.run("awake", "x")).value == "1"
    with pytest.raises(ImageDamaged, match=WRONG):
        await house.machines.rollback("awake", instruction=None)
    assert (await house.machines.run("awake", "x")).value == "1"
    house.images.wrong = ""
    await look(house)
    assert (await house.machines.run("asleep", "x")).value == "1"


async def test_a_stop_does_not_wait_for_a_look_that_takes_long(house: House) -> None:
    begun = asyncio.Event()

    async def endless(digest: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    house.images.scrub = endless
    await house.machines.create(NewMachine(name="one"))
    async with asyncio.timeout(5):
        await begun.wait()
        await house.machines.forge.stop()
