"""A name server that never answers keeps nobody waiting but who asked for its names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from everforge.egress.names import Asker


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
