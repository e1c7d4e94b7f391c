"""The last step of `make setup`: the template that new machines begin from is there before anybody asks for one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from everforge.folders import images_folder
from everforge.server.datafolder import DataFolder
from kit.real import until_gone
from kit.serverprocess import ServerProcess

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


@pytest.mark.slow
async def test_setup_leaves_alone_what_a_killed_server_left_running_and_waiting(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    await server.call("run", name=name, code="import time")
    running, _ = await server.call("exec", name=name, code="while True: time.sleep(0.01)", timeout_seconds=600)
    waiting, _ = await server.call("exec", name=name, code="2", timeout_seconds=600)
    await server.kill()
    done = prepare(data)
    assert done.returncode == 0, done.stderr
    server = await ServerProcess(data).start()
    tape = await server.call("tape", name=name)
    assert not [e for e in tape if e["kind"] == "ended" and e["instruction"] in (running, waiting)]
    assert (await server.call("get", name=name))["state"] == "busy"
    await server.call("interrupt", name=name)
    assert (await server.call("result", name=name, instruction=waiting))["value"] == "2"
    await server.call("delete", name=name)
    await server.stop()
    await until_gone(data)


def test_a_data_folder_in_use_or_damaged_does_not_stop_setup(data: Path) -> None:
    folder = DataFolder(data)
    folder.lock()
    busy = prepare(data)
    folder.unlock()
    assert (busy.returncode, busy.stdout) == (0, "template is the running server's\n")
    shutil.rmtree(data)
    data.write_bytes(b"no folder")
    damaged = prepare(data)
    data.unlink()
    assert damaged.returncode == 0
    assert damaged.stderr.startswith("setup: there is no template for new machines yet: ")
    assert damaged.stderr.count("\n") == 1, damaged.stderr
