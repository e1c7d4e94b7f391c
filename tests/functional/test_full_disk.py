"""Must show 8: a disk that is full at save time keeps the machine awake; it says so, and hibernates when there is room."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.wire.errors import DiskFull, SaveFailed
from kit.real import TESTED, real_machines, until_gone

pytestmark = [pytest.mark.gvisor, pytest.mark.root]

DISK_MB = 400
LEFT_MB = 12  # room for the records, not for a snapshot


@pytest.fixture
def small_disk(data: Path) -> Iterator[Path]:
    """A data folder on a disk of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "everforge-test", str(data)], check=True)
    small = data / "d"  # not the mount itself, which would look like something left behind
    small.mkdir()
    yield small
    subprocess.run(["umount", "--lazy", str(data)], check=True)  # a failed save leaves a descriptor open in the sandbox until that is gone


def fill(folder: Path, left_mb: int) -> Path:
    import os

    free = os.statvfs(folder)
    ballast = folder / "ballast"
    with open(ballast, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - left_mb * 1024 * 1024)
    return ballast


async def test_a_full_disk_at_save_time(small_disk: Path) -> None:
    async with real_machines(small_disk, replace(TESTED, save_retry_seconds=0.3)) as machines:
        name = (await machines.create(NewMachine(idle_seconds=1.0))).record.name
        await machines.run(name, "x = bytearray(30 << 20); x[7] = 7")
        ballast = fill(small_disk, LEFT_MB)
        with pytest.raises((DiskFull, SaveFailed)):
            await machines.hibernate(name)
        await asyncio.sleep(2)  # the idle timer has tried, too
        view = await machines.get(name)
        async with asyncio.timeout(10):
            while (view := await machines.get(name)).state != "ready":  # it may be trying again right now
                await asyncio.sleep(0.02)
        assert "space" in (view.record.error or "") or "full" in (view.record.error or ""), view.record.error
        assert (await machines.run(name, "x[7]")).value == "7"
        assert not list((small_disk / "snapshots").glob(".partial-*")), "half a snapshot takes what room there is"
        ballast.unlink()
        async with asyncio.timeout(30):
            while (await machines.get(name)).state != "asleep":
                await asyncio.sleep(0.1)
        assert (await machines.get(name)).record.error is None
        assert (await machines.run(name, "x[7]")).value == "7"
    await until_gone(small_disk)
