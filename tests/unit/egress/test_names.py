"""A name server that never answers keeps nobody waiting but who asked for its names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from everforge.egress.names import OF_ACCOUNT_MAX, OF_MACHINE_MAX, Asker, Askers, Lookup
from everforge.wire.ids import AccountId


class Slow:
    """A resolver that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        await self.answers.wait()
        raise OSError("never heard of it")


async def test_look_ups_that_nobody_waits_for_any_longer_count_until_they_are_over() -> None:
    slow = Slow()
    asker = Asker(slow, at_once=2)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asker("slow.example", 443)
    assert slow.asked == 2
    slow.answers.set()
    for _ in range(3):
        with pytest.raises(OSError, match="never heard of it"):
            await asker("slow.example", 443)
    assert slow.asked == 5


async def ask(asker: Lookup) -> None:
    with pytest.raises((TimeoutError, OSError)):
        async with asyncio.timeout(0.01):
            await asker("slow.example", 443)


async def test_an_account_has_so_many_look_ups_under_way_however_many_machines_it_has_and_however_often_they_wake() -> None:
    slow = Slow()
    askers = Askers(slow)
    for _ in range(OF_ACCOUNT_MAX):
        awake = askers.of_machine(AccountId("mine"))  # and then it sleeps
        await ask(awake)
        await ask(awake)
    assert slow.asked == OF_ACCOUNT_MAX
    other = askers.of_machine(AccountId("other"))
    for _ in range(2 * OF_MACHINE_MAX):
        await ask(other)
    assert slow.asked == OF_ACCOUNT_MAX + OF_MACHINE_MAX
    slow.answers.set()
    await asyncio.sleep(0)
    await ask(askers.of_machine(AccountId("mine")))
