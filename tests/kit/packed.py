"""Waiting for what is packed behind the answer."""

from __future__ import annotations

import asyncio

from everforge.machines.service import Machines


async def until_packed(machines: Machines, name: str) -> None:
    """Every point of a machine but its head, and nobody is at it any more."""
    async with asyncio.timeout(60):
        while not await is_packed(machines, name):
            await asyncio.sleep(0.02)


async def is_packed(machines: Machines, name: str) -> bool:
    working = machines.forge.archive._working  # pyright: ignore[reportPrivateUsage]
    head = (await machines.get(name)).record.head
    points = [p.snapshot for p in await machines.points(name) if p.reason != "template" and p.snapshot != head]
    return not await machines.forge.snapshots.unpacked(points) and (working is None or working.done())
