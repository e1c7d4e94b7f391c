"""Another runsc is installed: machines go on in the one they were born in, asleep or awake, and new ones start in the new one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everforge.engine.gvisor.supply import find_or_build
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.progress import Silent
from everforge.server.bootstrap import open_machines
from kit.real import LINGER_SECONDS, TESTED, give_template, real_machines, until_gone

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]


async def build_of(machines: Machines, name: str) -> str:
    """That its head belongs to."""
    head = (await machines.get(name)).record.head
    assert head is not None
    manifest, _ = await machines.forge.snapshots.open(head)
    return manifest.engine_build


@pytest.fixture
def another_runsc(tmp_path: Path) -> Path:
    """The same program, and another build of it by everything that can be seen from outside."""
    other = tmp_path / "runsc"
    shutil.copy2(find_or_build(Silent()), other)
    with open(other, "ab") as file:
        file.write(b"another build")
    return other


async def test_machines_outlive_an_upgrade_of_runsc(data: Path, another_runsc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_template(data, TESTED.image)
    machines, folder = await open_machines(data, TESTED, warden_linger_seconds=LINGER_SECONDS)
    for name in ("sleeper", "awake", "untouched"):
        await machines.create(NewMachine(name=name))
    await machines.run("sleeper", "x = ['before']")
    await machines.run("awake", "x = ['before']")
    await machines.hibernate("sleeper")
    await machines.hibernate("untouched")
    old = machines.forge.engine.build
    (kept,) = (folder.path / "engine").glob("*/runsc")
    await machines.forge.stop(hibernate=False)  # what is awake stays with the warden
    folder.unlock()

    monkeypatch.setenv("EVERFORGE_RUNSC", str(another_runsc))
    async with real_machines(data, keep=True) as machines:
        assert machines.forge.engine.build != old
        await machines.create(NewMachine(name="newcomer"))
        assert (await machines.run("untouched", "x = ['before']; len(x)")).value == "1"
        for name in ("sleeper", "awake"):
            assert (await machines.run(name, "x.append('after'); x")).value == "['before', 'after']"
        for name in ("sleeper", "awake", "untouched", "newcomer"):
            await machines.hibernate(name)  # the living one is saved by the build that runs it
        builds = {name: await build_of(machines, name) for name in ("sleeper", "awake", "untouched", "newcomer")}
        assert builds == {"sleeper": old, "awake": old, "untouched": old, "newcomer": machines.forge.engine.build}
        for name in builds:
            assert (await machines.run(name, "'x' in dir()")).value == str(name != "newcomer")
        (fork,) = await machines.fork("sleeper")
        assert (await machines.run(fork.record.name, "x")).value == "['before', 'after']"

    away = kept.rename(kept.with_name("away"))
    async with real_machines(data, keep=True) as machines:
        ended = await machines.run("sleeper", "x")
        view = await machines.get("sleeper")
        assert (ended.end, view.state) == ("lost", "broken")
        assert f"engine build {old[:40]}, which is not kept here; nothing was run" in (view.record.error or "")
        head = view.record.head
        assert (await machines.run("newcomer", "1 + 1")).value == "2"

    away.rename(kept)
    async with real_machines(data) as machines:
        await machines.rollback("sleeper", snapshot=head)
        assert (await machines.run("sleeper", "x")).value == "['before', 'after']"
    await until_gone(data)


async def test_a_kept_runsc_that_rotted_is_not_run(data: Path, another_runsc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with real_machines(data, keep=True) as machines:
        await machines.create(NewMachine(name="sleeper"))
        await machines.run("sleeper", "x = 1")
    (kept,) = (data / "engine").glob("*/runsc")
    rotten = kept.read_bytes()
    kept.unlink()  # it may be a link to the one that everybody uses
    kept.write_bytes(rotten[:-1] + bytes([rotten[-1] ^ 1]))
    kept.chmod(0o755)
    async with real_machines(data, keep=True) as machines:  # the present one is put there anew
        assert (await machines.run("sleeper", "x")).value == "1"
    assert kept.read_bytes() == rotten
    kept.unlink()
    kept.write_bytes(rotten[:-1] + bytes([rotten[-1] ^ 1]))
    kept.chmod(0o755)
    monkeypatch.setenv("EVERFORGE_RUNSC", str(another_runsc))
    async with real_machines(data) as machines:
        assert (await machines.run("sleeper", "x")).end == "lost"
        assert "not kept here" in ((await machines.get("sleeper")).record.error or "")
    await until_gone(data)
