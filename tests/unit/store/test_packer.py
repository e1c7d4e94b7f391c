"""The packer as a process: it answers, comes back after its death, and never outlives its server."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everforge.store.packs.packer import PackerProcess
from everforge.store.packs.packing import Job
from everforge.store.snapshots import SnapshotFolder
from everforge.wire.ids import new_snapshot_id

from .test_packs import MACHINE, content, is_packed, names, pages, save


@pytest.fixture
async def packer() -> AsyncIterator[PackerProcess]:
    packer = PackerProcess()
    yield packer
    await packer.close()


@pytest.fixture
async def folder(tmp_path: Path, packer: PackerProcess) -> AsyncIterator[SnapshotFolder]:
    folder = SnapshotFolder(tmp_path / "snapshots", packed_bytes=1000, packer=packer)
    yield folder
    await folder.close()


def pid_of(packer: PackerProcess) -> int:
    process = packer._process  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    return process.pid


async def ended(pidfd: int) -> bool:
    try:
        readable, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], 10)
        return bool(readable)
    finally:
        os.close(pidfd)


async def test_a_snapshot_is_packed_in_another_process_of_low_priority(folder: SnapshotFolder, packer: PackerProcess) -> None:
    memory = pages(5)
    point = await save(folder, memory)
    await folder.pack(point, None)
    assert is_packed(folder, point)
    assert os.getpriority(os.PRIO_PROCESS, pid_of(packer)) > os.getpriority(os.PRIO_PROCESS, 0)
    assert await content(folder, point) == b"".join(memory)


async def test_a_job_that_fails_is_said_so_and_the_next_one_is_done(folder: SnapshotFolder, packer: PackerProcess, tmp_path: Path) -> None:
    point = await save(folder, pages(5))
    (folder.root / f".pack-{MACHINE}").touch()  # where the pack should be
    assert not await packer.do(Job(root=str(folder.root), machine=MACHINE, snapshot=point))
    assert not is_packed(folder, point)
    (folder.root / f".pack-{MACHINE}").unlink()
    assert await packer.do(Job(root=str(folder.root), machine=MACHINE, snapshot=point))
    assert is_packed(folder, point)


async def test_after_its_death_there_is_another(folder: SnapshotFolder, packer: PackerProcess) -> None:
    one, two = await save(folder, pages(5)), await save(folder, pages(5))
    await folder.pack(one, None)
    first = pid_of(packer)
    pidfd = os.pidfd_open(first)
    os.kill(first, signal.SIGKILL)
    assert await ended(pidfd)
    await folder.pack(two, None)  # this one may still meet the dead one
    await folder.pack(two, None)
    assert is_packed(folder, two)
    assert pid_of(packer) != first


async def test_closing_ends_it(packer: PackerProcess, tmp_path: Path) -> None:
    assert await packer.do(Job(root=str(tmp_path), machine=MACHINE, snapshot=new_snapshot_id()))
    pidfd = os.pidfd_open(pid_of(packer))
    await packer.close()
    assert await ended(pidfd)


SERVER = """
import asyncio, sys, time
from everforge.store.packs.packer import PackerProcess
from everforge.store.packs.packing import Job
async def main():
    packer = PackerProcess()
    assert await packer.do(Job(root=sys.argv[1], machine="m1"))
    print(packer._process.pid, flush=True)
    time.sleep(60)
asyncio.run(main())
"""


async def test_it_dies_with_its_server(tmp_path: Path) -> None:
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, str(tmp_path), stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    pidfd = os.pidfd_open(int(await asyncio.wait_for(server.stdout.readline(), 20)))
    server.kill()
    await server.wait()
    assert await ended(pidfd)


async def test_cancelling_a_job_leaves_the_snapshot_whole_or_packed(folder: SnapshotFolder) -> None:
    memory = pages(3000)
    point = await save(folder, memory)
    packing = asyncio.ensure_future(folder.pack(point, None))
    await asyncio.wait([packing], timeout=0.3)
    packing.cancel()
    await asyncio.wait([packing])
    await folder.sweep(frozenset({point}), partials_too=True)
    assert await content(folder, point) == b"".join(memory)
    await folder.delete(point)
    assert names(folder) == set()
