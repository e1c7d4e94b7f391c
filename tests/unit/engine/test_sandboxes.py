"""What a warden leaves open when something fails. No sandbox comes up here: runsc is a program that fails, or is not reached at all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everforge.engine.warden import folders, held, verbs
from everforge.engine.warden.children import Children
from everforge.engine.warden.processes import Process
from everforge.engine.warden.sandboxes import Sandboxes
from everforge.wire.errors import SandboxLost, StartFailed
from everforge.wire.ids import new_sandbox_id

ENGINE = "0" * 64


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    found = folders.find(tmp_path)
    folders.make(found)
    for folder in (found.engines / ENGINE, tmp_path / "images" / "one", tmp_path / "snapshots"):
        folder.mkdir(parents=True)
    shutil.copy("/bin/false", found.engines / ENGINE / "runsc")
    family = Children()
    family.begin()
    yield Sandboxes(found, None, family, tmp_path / "images", tmp_path / "snapshots", lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def new(tmp_path: Path) -> verbs.Start:
    return verbs.Start(id=new_sandbox_id(), engine=ENGINE, image=str(tmp_path / "images" / "one"), memory_mb=64, cpus=1.0, processes=8, disk_mb=8)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def left(tmp_path: Path) -> list[Path]:
    places = folders.find(tmp_path)
    return [entry for folder in (places.bundles, places.logs, places.state) for entry in folder.iterdir()]


async def test_a_command_that_fails_leaves_no_descriptor_and_no_file(sandboxes: Sandboxes, tmp_path: Path) -> None:
    before = descriptors()
    with pytest.raises(StartFailed):
        await sandboxes.start(new(tmp_path))
    assert (descriptors(), left(tmp_path), len(sandboxes)) == (before, [], 0)


async def test_a_command_that_cannot_be_run_is_a_failed_start(sandboxes: Sandboxes, tmp_path: Path) -> None:
    (folders.find(tmp_path).engines / ENGINE / "runsc").chmod(0)
    (folders.find(tmp_path).engines / ENGINE / "runsc").write_bytes(b"")
    before = descriptors()
    with pytest.raises(StartFailed):
        await sandboxes.start(new(tmp_path))
    assert (descriptors(), left(tmp_path), len(sandboxes)) == (before, [], 0)


@pytest.mark.parametrize("call", ["pipe", "socketpair"])
async def test_a_host_without_descriptors_gives_a_failed_start_and_keeps_none_of_them(
    sandboxes: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    before, real, calls = descriptors(), os.pipe, 0

    def second_fails() -> tuple[int, int]:
        nonlocal calls
        calls += 1
        if calls > 1 or call == "socketpair":
            raise OSError(24, "Too many open files")
        return real()

    monkeypatch.setattr(held.os if call == "pipe" else held.socket, call, second_fails)
    with pytest.raises(StartFailed, match="Too many open files"):
        await sandboxes.start(new(tmp_path))
    assert (descriptors(), left(tmp_path), len(sandboxes)) == (before, [], 0)


async def test_an_adoption_that_fails_takes_nothing(sandboxes: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gofer is there, and the sentry is not."""
    places, id = folders.find(tmp_path), new_sandbox_id()
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60; :", f"--root={places.state}", id]) as gofer:
        (places.state / f"{id}_sandbox:{id}.state").write_text(f'{{"sandbox": {{"pid": {2**22 + 1}}}, "goferPid": {gofer.pid}}}')
        before = descriptors()
        verb = verbs.Adopt(id=id, engine=ENGINE, memory_mb=64, pooled=False)
        read, write = os.pipe()
        with pytest.raises(SandboxLost):
            sandboxes.adopt(verb, [read, write, write])
        os.close(read)
        os.close(write)
        assert descriptors() == before
        gofer.kill()


async def test_a_process_is_not_taken_for_ended_when_no_descriptor_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", fails)
    with pytest.raises(OSError, match="Too many"):
        Process.open(os.getpid(), new_sandbox_id(), Path("/s"))


def test_a_look_in_the_second_that_a_sandbox_takes_to_die_does_not_hide_what_it_died_of() -> None:
    one = held.Held("s1", ENGINE, None, None, 64, pooled=False)  # type: ignore[arg-type]
    one.note_memory_kills(0)
    assert not one.is_out_of_memory(0)
    one.note_memory_kills(1)
    assert one.is_out_of_memory(1)
    one.note_memory_kills(1)  # it has outlived that one
    assert not one.is_out_of_memory(1)
    assert one.is_out_of_memory(2)
