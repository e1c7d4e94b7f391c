"""A server of the least kind, to be killed or to be run as another user: `ACTION DATA RUNSC IMAGES IMAGE`. Prints one line when it is ready."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from guest_driver import Driver

from everforge.engine.base import Image, Limits
from everforge.engine.gvisor.engine import Gvisor
from everforge.engine.gvisor.pools import PoolSettings

LIMITS = Limits(memory_mb=256, cpus=1.0, processes=64, disk_mb=64)
SMALL = Limits(memory_mb=64, cpus=1.0, processes=16, disk_mb=64)


async def hold(engine: Gvisor, image: Image, data: Path) -> None:
    """One machine's sandbox and two that wait in pools; then wait to be killed."""
    sandbox = await engine.start(image, LIMITS)
    folder = data / "snapshots" / "held"
    folder.mkdir(exist_ok=True)
    await sandbox.save(folder)
    await engine.keep_ready(image, folder, LIMITS, 1)
    await engine.pools_filled()
    print(sandbox.id, engine.warden_pid, flush=True)
    await asyncio.Event().wait()


async def hog(engine: Gvisor, image: Image) -> None:
    """Two sandboxes, of which one takes far more memory than it may: how that one ended, and what the other says afterwards."""
    sandboxes = [await engine.start(image, SMALL) for _ in range(2)]
    drivers = [Driver(sandbox.link) for sandbox in sandboxes]
    for driver in drivers:
        await driver.attach(epoch=1)
        await driver.go()
    greedy, neighbour = drivers
    await neighbour.value("x = 7")
    await greedy.begin("hoard = b'x' * (600 << 20)\nimport time\ntime.sleep(60)")
    async with asyncio.timeout(60):
        ending = await sandboxes[0].ended()
    print(ending.how, ending.detail, await neighbour.value("x * 6"), flush=True)
    for sandbox in sandboxes:
        await sandbox.destroy()


async def main() -> None:
    action, data, runsc, images, root = sys.argv[1], *map(Path, sys.argv[2:])
    engine = await Gvisor.open(data, runsc, images, pool=PoolSettings(empty=1), linger_seconds=0.2)
    if action == "hold":
        await hold(engine, Image("image", root), data)
        return
    if action == "hog":
        await hog(engine, Image("image", root))
        await engine.close()
        return
    probe = await engine.probe(Image("image", root))
    print(probe.fit, probe.facts["rootless"], probe.facts["limits"], probe.summary, flush=True)
    await engine.close()


asyncio.run(main())
