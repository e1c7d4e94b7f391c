from __future__ import annotations

import asyncio

from everforge.mcp.progress import Progress
from kit.mcpserving import until


async def test_many_lines_are_few_notifications_that_grow_and_end_with_the_last_line() -> None:
    told: list[tuple[float, str | None]] = []

    async def send(count: float, message: str | None) -> None:
        told.append((count, message))

    progress = Progress(send)
    async with progress.beating():
        for number in range(1000):
            progress.line(f"line {number}")
            if number % 100 == 0:
                await asyncio.sleep(0)
        await until(lambda: told and told[-1] == (1000.0, "line 999"))
    assert len(told) < 5
    assert [count for count, _ in told] == sorted({count for count, _ in told})


async def test_a_silent_computation_gives_signs_of_life_that_grow() -> None:
    told: list[float] = []

    async def send(count: float, message: str | None) -> None:
        told.append(count)
        assert message is None

    async with Progress(send, heartbeat_seconds=0.01).beating():
        await until(lambda: len(told) >= 2)
    assert told == sorted(set(told))
    ended = len(told)
    await asyncio.sleep(0)
    assert len(told) == ended


async def test_the_end_is_not_held_up_by_news_that_come_with_it() -> None:
    async def send(count: float, message: str | None) -> None:
        await asyncio.sleep(0)

    for _ in range(20):
        progress = Progress(send)
        async with asyncio.timeout(5), progress.beating():
            await asyncio.sleep(0)
            progress.line("x")


async def test_nobody_asked_nobody_is_told() -> None:
    progress = Progress()
    async with progress.beating():
        progress.line("x" * 1000)
