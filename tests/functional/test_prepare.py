"""The last step of `make setup`: the template that new machines begin from is there before anybody asks for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everforge.folders import images_folder
from everforge.server.datafolder import DataFolder
from kit.real import until_gone

pytestmark = pytest.mark.gvisor


def prepare(data: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "everforge.server.prepare"]
    env = {**os.environ, "EVERFORGE_DATA": str(data), "EVERFORGE_IMAGES": str(images_folder())}
    return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)


@pytest.mark.slow
async def test_setup_makes_the_template_once_and_leaves_nothing_running(data: Path) -> None:
    first, second = prepare(data), prepare(data)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == second.stdout
    made = Path(first.stdout.removeprefix("template ").strip())
    assert (made / "checkpoint.img").stat().st_size
    assert os.listdir(data / "snapshots") == [made.name]
    await until_gone(data)


def test_a_data_folder_in_use_or_damaged_does_not_stop_setup(data: Path) -> None:
    folder = DataFolder(data)
    folder.lock()
    busy = prepare(data)
    folder.unlock()
    assert (busy.returncode, busy.stdout) == (0, "template is the running server's\n")
    (data / "everforge.db").write_bytes(b"no database" * 1000)
    damaged = prepare(data)
    assert damaged.returncode == 0
    assert damaged.stderr.startswith("setup: there is no template for new machines yet: ")
    assert damaged.stderr.count("\n") == 1, damaged.stderr
