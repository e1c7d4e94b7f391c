"""A byte that changed in an image while a server runs is found behind its back, and machines of that image are refused, not run."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everforge.images.catalogue import Catalogue
from everforge.machines.requests import NewMachine
from everforge.wire.errors import WakeFailed
from kit.real import TESTED, Silent, ensure, real_machines, template, until_gone

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

SOON = replace(TESTED, image_scrub_first_seconds=1.0, image_scrub_hours=0.5 / 3600)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of an image that may be damaged: a copy, in a folder of its own. (Below the other, so that links can be made.)"""
    template(TESTED.image)  # made with the whole one
    catalogue = Catalogue.here()
    image = ensure(TESTED.image, catalogue, Silent())
    copy = catalogue.images / f".test-{os.getpid()}"
    copy.mkdir()
    for part in ("names", image.digest):
        subprocess.run(["cp", "-al", catalogue.images / part, copy / part], check=True)
    monkeypatch.setenv("EVERFORGE_IMAGES", str(copy))
    yield copy / image.digest / "root"
    shutil.rmtree(copy)


def change_a_byte(path: Path) -> None:
    """In a copy: the other links to it are other images. Size and times stay, as on a failing disk."""
    status, folder = path.stat(), path.parent.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)
    path.chmod(status.st_mode)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(path.parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))


async def test_a_changed_byte_is_found_while_the_server_runs_and_keeps_machines_from_waking(
    data: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = next(root.rglob("_multiarray_umath*.so"))
    async with real_machines(data, SOON, keep=True) as machines:
        for name in ("sleeper", "awake"):
            await machines.create(NewMachine(name=name))
            await machines.run(name, "x = 1")
        await machines.hibernate("sleeper")
        change_a_byte(library)
        async with asyncio.timeout(60):
            while library.name not in caplog.text:
                await asyncio.sleep(0.1)
        with pytest.raises(WakeFailed, match=r"_multiarray_umath.*everforge image delete"):
            await machines.wake("sleeper")
        assert (await machines.get("sleeper")).state == "asleep"
        assert (await machines.run("awake", "x")).value == "1"
    async with real_machines(data, TESTED) as machines:  # long before this one looks by itself
        with pytest.raises(WakeFailed, match="_multiarray_umath"):
            await machines.wake("sleeper")
    await until_gone(data)
