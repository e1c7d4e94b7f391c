"""Files in and out of real sandboxes: large ones with flat memory, folders, bombs, and a transfer that goes on after a sleep."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.errors import ArchiveRefused, DiskFull, FileRefused, TransferCut
from everforge.wire.files import CHUNK_BYTES, Format

pytestmark = pytest.mark.gvisor

MB = 1024 * 1024
LARGE_MB = 200
FLAT_MB = 40  # that memory may rise by, on either side, while it passes


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / MB


async def send(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def content(machines: Machines, name: str, path: str) -> bytes:
    _, stream = await machines.files(name).read(path)
    return b"".join([piece async for piece in stream])


async def test_200_mb_pass_up_and_down_with_flat_memory_while_an_instruction_runs(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "import time")
    files, block = machines.files(name), os.urandom(MB)
    before, before_guest, highest = resident_mb(), await machines.memory_bytes(name), 0.0
    sums = hashlib.sha256(), hashlib.sha256()
    number, _ = await machines.exec(name, "time.sleep(600)", timeout_seconds=1000)

    async def large() -> AsyncIterator[bytes]:
        for _ in range(LARGE_MB):
            sums[0].update(block)
            yield block

    info = await files.write("large.bin", large())
    assert info.size_bytes == LARGE_MB * MB
    _, stream = await files.read("large.bin")
    async for piece in stream:
        sums[1].update(piece)
        highest = max(highest, resident_mb())
    assert sums[0].digest() == sums[1].digest()
    assert highest - before < FLAT_MB, "the server keeps what passes"
    assert (await machines.get(name)).state == "busy"
    await files.remove("large.bin")
    assert (await machines.memory_bytes(name) - before_guest) / MB < LARGE_MB, "the guest keeps what passed"
    await machines.interrupt(name)
    assert (await machines.result(name, number)).end == "interrupted"


async def test_code_and_files_see_each_other_as_the_same_user(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    files = machines.files(name)
    await files.write("in/dätä \udcff.txt", send(b"from outside"))
    ended = await machines.run(name, "import os; n = os.listdir('in'); (os.stat('in/' + n[0]).st_uid == os.getuid(), open('in/' + n[0]).read())")
    assert ended.value == "(True, 'from outside')"
    await machines.run(name, "open('out', 'w').write('from inside'); os.mkfifo('pipe'); os.symlink('out', 'link')")
    assert await content(machines, name, "link") == b"from inside"
    assert {f.name: f.kind for f in (await files.list()).files if f.name[0] != "."} == {
        "in": "folder",
        "link": "link",
        "out": "file",
        "pipe": "other",
    }
    assert (await files.stat("/home/user/out")).path == "out"
    with pytest.raises(FileRefused):
        await files.read("/proc/1/mem")
    with pytest.raises(FileRefused):
        await files.write("/etc/evil", send(b"x"))


async def test_a_transfer_goes_on_after_a_sleep_in_the_middle_and_is_cut_by_a_rollback(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    files, block = machines.files(name), os.urandom(CHUNK_BYTES)
    point = await machines.snapshot(name)

    async def sleepy(then: str) -> AsyncIterator[bytes]:
        yield block * 2
        if then == "sleep":
            await machines.hibernate(name)
        else:
            await machines.rollback(name, snapshot=point.snapshot)
        yield block

    await files.write("x", sleepy("sleep"))
    assert await content(machines, name, "x") == block * 3
    _, stream = await files.read("x")
    found = await anext(stream)
    await machines.hibernate(name)
    async for piece in stream:
        found += piece
    assert found == block * 3
    with pytest.raises(TransferCut):
        await files.write("y", sleepy("rollback"))
    assert [f.name for f in (await files.list()).files if not f.name.startswith(".local")] == []


FORMATS: tuple[Format, ...] = ("tar", "tar.gz", "zip")
TREE = "import os\nfor i in range(200):\n    os.makedirs(f'd/{i % 7}', exist_ok=True)\n    open(f'd/{i % 7}/{i} ü', 'wb').write(os.urandom(i * 50))"


async def test_a_folder_goes_out_and_in_as_it_is(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    files = machines.files(name)
    assert (await machines.run(name, TREE, timeout_seconds=60)).end == "value"
    for form in FORMATS:
        packed = b"".join([piece async for piece in await files.pack("d", form)])
        assert (await files.unpack(form, form, send(packed))).files == 200
        difference = await machines.run(name, f"import subprocess; subprocess.run(['diff', '-r', 'd', '{form}']).returncode", timeout_seconds=60)
        assert difference.value == "0"


FILL = """
import os
with open('fill', 'wb') as f:
    while os.statvfs('.').f_bavail * os.statvfs('.').f_frsize > 60 << 20:
        f.write(bytes(1 << 20))
"""


async def test_bombs_and_uploads_that_do_not_fit_leave_the_disk_as_it_was(machines: Machines) -> None:
    name = (await machines.create(NewMachine(disk_mb=1024))).record.name
    files = machines.files(name)
    assert (await machines.run(name, FILL, timeout_seconds=120)).end == "value"
    for form in FORMATS:
        with pytest.raises(ArchiveRefused, match="room"):
            await files.unpack("bomb", form, send(a_bomb(form)))
    with pytest.raises(DiskFull):
        await files.write("large", send(*[bytes(MB)] * 100))
    await files.write("small", send(bytes(5 * MB)))
    assert sorted(f.name for f in (await files.list()).files if f.name[0] != ".") == ["fill", "small"]


def a_bomb(form: Format) -> bytes:
    """Small itself, and more than fits."""
    zeros, out = bytes(10 * MB), io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
            for i in range(10):
                made.writestr(f"{i}", zeros)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w:gz" if form == "tar.gz" else "w") as tar:
        for i in range(10 if form == "tar.gz" else 1):
            info = tarfile.TarInfo(f"{i}")
            info.size = 10 * MB
            tar.addfile(info, io.BytesIO(zeros))
    if form == "tar":
        info = tarfile.TarInfo("large")
        info.size = 100 * MB  # it says what it needs before it comes
        return info.tobuf()
    return out.getvalue()
