"""What only the real engine can show: limits, pools, a warden that is killed, a user without root."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import everforge
from everforge.engine.base import How, Image, Limits, Sandbox
from everforge.engine.gvisor.client import Client
from everforge.engine.gvisor.engine import Gvisor
from everforge.engine.gvisor.pools import PoolSettings
from everforge.engine.gvisor.sandbox import GvisorSandbox
from everforge.engine.warden import bundle, processes
from everforge.wire.errors import DiskFull, EngineUnfit, EverforgeError, InvalidInput, SnapshotDamaged, StartFailed
from everforge.wire.messages import End

from .engine_suite import LIMITS, restored, saved, started
from .guest_driver import Driver
from .gvisor_ground import LINGER_SECONDS, GvisorGround, until

pytestmark = [pytest.mark.gvisor, pytest.mark.root]

USER = 61_234  # no such user exists, and none is needed
SERVER = Path(__file__).with_name("server_process.py")


def _limits_in_force(ground: GvisorGround, id: str) -> dict[str, int]:
    below = f"everforge-{ground.places.mark}-{id}"
    one, two = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup") / below
    if two.exists():
        files = {"memory": two / "memory.max", "pids": two / "pids.max"}
    else:
        files = {"memory": one / "memory" / below / "memory.limit_in_bytes", "pids": one / "pids" / below / "pids.max"}
    return {name: int(file.read_text()) for name, file in files.items()}


async def _hold(ground: GvisorGround, runsc: Path) -> tuple[asyncio.subprocess.Process, str, int]:
    """A server in a process of its own: (process, id of its sandbox, its warden)."""
    command = [sys.executable, str(SERVER), "hold", str(ground.data), str(runsc), str(ground.image.root.parent.parent), str(ground.image.root)]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    id, warden = (await server.stdout.readline()).decode().split()
    return server, id, int(warden)


async def _one_waiting(ground: GvisorGround) -> tuple[Sandbox, Path]:
    """A saved sandbox and its snapshot; and since that was restored once, one empty sandbox waits for the next time."""
    sandbox, driver = await started(ground)
    folder = await saved(ground, sandbox, driver)
    copy, _ = await restored(ground, folder)
    await copy.destroy()
    await ground.engine.pools_filled()
    return sandbox, folder


@contextmanager
def small_disk(folder: Path) -> Generator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        # Lazily: after a failed save the sentry keeps one descriptor open until its next collection of garbage.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _give_to_user(folder: Path, runsc: Path, image: Image) -> tuple[list[str], list[str]]:
    """Both ends of a command that an ordinary user can run: interpreter, sources, runsc and image lie where it can reach them."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    assert python is not None
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    shutil.copytree(Path(everforge.__file__).parent, packages / "everforge", ignore=shutil.ignore_patterns("__pycache__"))
    for script in (SERVER, SERVER.with_name("guest_driver.py")):
        shutil.copy(script, folder)
    shutil.copy(runsc, folder / "runsc")
    (folder / "images" / "one").mkdir(parents=True)
    subprocess.run(["cp", "-a", "--reflink=auto", str(image.root), str(folder / "images" / "one" / "root")], check=True)
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", str(folder / "venv" / "bin" / "python")]
    data, images = folder / "data", folder / "images"
    return [*become, str(folder / SERVER.name)], list(map(str, (data, folder / "runsc", images, images / "one" / "root")))


@pytest.fixture
async def ground(tmp_path: Path, runsc: Path, minimal_image: Image) -> AsyncIterator[GvisorGround]:
    ground = GvisorGround(tmp_path, runsc, minimal_image, PoolSettings(empty=0))
    await ground.open()
    yield ground
    await ground.close()


class TestLimits:
    async def test_a_program_over_the_memory_of_its_sandbox_ends_and_the_host_is_safe(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground, Limits(memory_mb=64, cpus=2.0, processes=64, disk_mb=64))
        await driver.begin("hog = []\nwhile True: hog.append(b'x' * (8 << 20))")
        answered = asyncio.create_task(driver.expect(End))
        ended = asyncio.create_task(sandbox.ended())
        await asyncio.wait([answered, ended], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        # Mostly the kernel ends the greedy process alone and the agent says so; it may also have to end the sandbox.
        if ended.done():
            assert ended.result().how is How.OUT_OF_MEMORY
        else:
            assert answered.result().end == "died"
            assert await driver.value("1") == "1"
        await sandbox.destroy()
        await asyncio.gather(answered, ended, return_exceptions=True)
        await ground.leaves_nothing()

    async def test_a_sandbox_gets_no_more_host_tasks_than_its_processes_need(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground, Limits(memory_mb=256, cpus=2.0, processes=16, disk_mb=64))
        assert _limits_in_force(ground, sandbox.id)["pids"] == bundle.tasks(16)
        await driver.begin("import os\nfor _ in range(400):\n    if os.fork() == 0:\n        import time; time.sleep(60); os._exit(0)")
        answered = asyncio.create_task(driver.expect(End))
        done, _ = await asyncio.wait([answered, asyncio.create_task(sandbox.ended())], timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert done, "neither an answer nor an end"
        await sandbox.destroy()
        await asyncio.gather(answered, return_exceptions=True)
        await ground.leaves_nothing()

    async def test_a_full_disk_is_told_to_the_program_and_takes_no_memory(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground)
        end = await driver.run("with open('/tmp/big', 'wb') as f:\n    for _ in range(300): f.write(bytes(1 << 20))")
        assert (end.end, end.error_name) == ("error", "OSError")
        assert "No space left" in str(end.error_message)
        assert await driver.value("__import__('os').stat('/tmp/big').st_size > (100 << 20)") == "True"
        assert await sandbox.memory_bytes() < 120 << 20
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_a_disk_that_fills_up_while_saving_leaves_the_sandbox_running(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground)
        await driver.freeze()
        with small_disk(ground.new_folder()) as folder, pytest.raises(DiskFull):
            await sandbox.save(folder)
        await driver.go()
        assert await driver.value("1 + 1") == "2"
        folder = await saved(ground, sandbox, driver)
        await sandbox.destroy()
        copy, driver = await restored(ground, folder)
        await copy.destroy()
        await ground.leaves_nothing()

    async def test_every_copy_has_a_host_name_of_its_own(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground)
        folder = await saved(ground, sandbox, driver)
        copies = [(sandbox, driver), *[await restored(ground, folder) for _ in range(2)]]
        await driver.go()
        names = {await driver.value("__import__('os').uname().nodename") for _, driver in copies}
        assert len(names) == 3
        await asyncio.gather(*(copy.destroy() for copy, _ in copies))
        await ground.leaves_nothing()


class TestRefusals:
    async def test_paths_outside_of_the_given_folders_are_refused(self, ground: GvisorGround, tmp_path: Path) -> None:
        sandbox, _ = await started(ground)
        outside = tmp_path / "outside"
        outside.mkdir()
        link = ground.data / "snapshots" / "link"
        link.symlink_to(outside)
        for folder in (outside, link, ground.data / "snapshots" / ".." / "outside", ground.data / "snapshots" / "missing"):
            with pytest.raises(InvalidInput):
                await sandbox.save(folder)
            with pytest.raises((InvalidInput, SnapshotDamaged)):
                await ground.engine.restore(ground.image, folder, LIMITS)
        with pytest.raises(InvalidInput):
            await ground.engine.start(Image("host", Path("/")), LIMITS)
        assert not list(outside.iterdir())
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_an_image_without_a_guest_is_refused_at_once(self, ground: GvisorGround) -> None:
        empty = ground.image.root.parent  # below the images folder, but no root file system
        with pytest.raises(StartFailed):
            await ground.engine.start(Image("none", empty), LIMITS)
        await ground.leaves_nothing()

    async def test_a_start_that_nobody_waits_for_leaves_nothing(self, ground: GvisorGround) -> None:
        starting = asyncio.create_task(ground.engine.start(ground.image, LIMITS))
        await asyncio.sleep(0.05)
        starting.cancel()
        await asyncio.wait([starting])
        await ground.leaves_nothing()
        assert not await ground.engine.survivors()


class TestPools:
    @pytest.fixture
    async def ground(self, tmp_path: Path, runsc: Path, minimal_image: Image) -> AsyncIterator[GvisorGround]:
        ground = GvisorGround(tmp_path, runsc, minimal_image, PoolSettings(empty=1))
        await ground.open()
        yield ground
        await ground.close()

    async def test_a_snapshot_is_restored_into_a_sandbox_that_waited_with_its_own_limits(self, ground: GvisorGround) -> None:
        sandbox, folder = await _one_waiting(ground)
        (waiting,) = set(processes.scan(ground.places.state)) - {sandbox.id}
        limits = Limits(memory_mb=300, cpus=LIMITS.cpus, processes=30, disk_mb=LIMITS.disk_mb)
        copy = await ground.engine.restore(ground.image, folder, limits)
        assert copy.id == waiting
        for file, value in _limits_in_force(ground, copy.id).items():
            assert value == {"memory": bundle.memory_bytes(300), "pids": bundle.tasks(30)}[file]
        assert (await Driver(copy.link).attach(epoch=2)).frozen
        assert set(await ground.engine.survivors()) == {sandbox.id, copy.id}
        await asyncio.gather(sandbox.destroy(), copy.destroy())
        await ground.leaves_nothing()

    async def test_a_damaged_snapshot_takes_the_waiting_sandbox_along(self, ground: GvisorGround) -> None:
        sandbox, _ = await _one_waiting(ground)
        await sandbox.destroy()
        folder = ground.new_folder()
        for name in ("checkpoint.img", "pages.img", "pages_meta.img"):
            (folder / name).write_bytes(b"nothing of ours")
        with pytest.raises(EverforgeError):
            await ground.engine.restore(ground.image, folder, LIMITS)
        await ground.leaves_nothing()

    async def test_a_sandbox_that_was_kept_ready_for_an_asker_who_gave_up_is_destroyed(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground)
        folder = await saved(ground, sandbox, driver)
        await sandbox.destroy()
        await ground.engine.keep_ready(ground.image, folder, LIMITS, 1)
        await ground.engine.pools_filled()
        asking = asyncio.create_task(ground.engine.restore(ground.image, folder, LIMITS))
        await asyncio.sleep(0)  # it has taken the sandbox, and waits for the warden
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await ground.leaves_nothing()
        assert not await ground.engine.survivors()

    async def test_nothing_is_restored_in_vain_after_the_warden_was_killed(self, ground: GvisorGround) -> None:
        sandbox, folder = await _one_waiting(ground)
        before = set(processes.scan(ground.places.state))
        os.kill(ground.engine.warden_pid, signal.SIGKILL)
        assert await sandbox.memory_bytes() > 0  # asked of the new one
        copy, _ = await restored(ground, folder)
        assert copy.id not in before
        await until(lambda: set(processes.scan(ground.places.state)) & before == {sandbox.id})
        await asyncio.gather(sandbox.destroy(), copy.destroy())
        await ground.leaves_nothing()

    @pytest.mark.parametrize("gives_up", [False, True])
    async def test_nothing_is_left_of_a_restore_that_was_asked_while_the_warden_was_replaced(
        self, ground: GvisorGround, monkeypatch: pytest.MonkeyPatch, gives_up: bool
    ) -> None:
        start, asked = Client._start, list[asyncio.Task[Any]]()  # pyright: ignore[reportPrivateUsage]

        async def start_and_be_asked(client: Client) -> bool:
            asked.append(asyncio.create_task(ground.engine.restore(ground.image, folder, LIMITS)))
            return await start(client)

        sandbox, folder = await _one_waiting(ground)
        monkeypatch.setattr(Client, "_start", start_and_be_asked)
        os.kill(ground.engine.warden_pid, signal.SIGKILL)
        assert await sandbox.memory_bytes() > 0  # asked of the new one
        if gives_up:
            asked[0].cancel()
        for copy in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(copy, GvisorSandbox):
                await copy.destroy()
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_sandboxes_kept_ready_are_handed_out_and_replaced(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground)
        await driver.value("x = 9")
        folder = await saved(ground, sandbox, driver)
        await sandbox.destroy()
        await ground.engine.keep_ready(ground.image, folder, LIMITS, 2)
        await ground.engine.pools_filled()
        assert not await ground.engine.survivors()
        copies = await asyncio.gather(*(restored(ground, folder) for _ in range(3)))
        assert [await driver.value("x") for _, driver in copies] == ["9"] * 3
        await ground.engine.pools_filled()
        assert len(await ground.engine.survivors()) == 3
        await ground.reopen()
        assert set(await ground.engine.survivors()) == {copy.id for copy, _ in copies}
        for copy in (await ground.engine.survivors()).values():
            await copy.destroy()
        await ground.leaves_nothing()


class TestFaults:
    async def test_a_warden_that_keeps_sandboxes_for_other_folders_is_named(self, ground: GvisorGround, runsc: Path, tmp_path: Path) -> None:
        sandbox, _ = await started(ground)
        await ground.engine.close()
        with pytest.raises(EngineUnfit, match=f"was started for images in .* not in {tmp_path / 'other'}"):
            await Gvisor.open(ground.data, runsc, tmp_path / "other", linger_seconds=LINGER_SECONDS)
        engine = await ground.open()
        await (await engine.survivors())[sandbox.id].destroy()
        await ground.leaves_nothing()

    async def test_a_new_warden_waits_for_a_server_that_is_slow_to_come(self, ground: GvisorGround, monkeypatch: pytest.MonkeyPatch) -> None:
        start = Client._start  # pyright: ignore[reportPrivateUsage]

        async def start_and_doze(client: Client) -> bool:
            started = await start(client)
            await asyncio.sleep(5 * LINGER_SECONDS)
            return started

        sandbox, driver = await started(ground)
        monkeypatch.setattr(Client, "_start", start_and_doze)
        os.kill(ground.engine.warden_pid, signal.SIGKILL)
        assert await sandbox.memory_bytes() > 0  # asked of the new one, which has not ended meanwhile, and taken everything with it
        assert await driver.value("1 + 1") == "2"
        await sandbox.destroy()
        await ground.leaves_nothing()

    async def test_a_killed_warden_is_replaced_and_the_guest_goes_on(self, ground: GvisorGround) -> None:
        sandbox, driver = await started(ground)
        await driver.begin("import time\nfor n in range(100): print(n); time.sleep(0.01)")
        old = ground.engine.warden_pid
        os.kill(old, signal.SIGKILL)
        assert await sandbox.memory_bytes() > 0  # asked of the new one
        assert ground.engine.warden_pid != old
        await driver.expect(End)
        await driver.value("x = 1")
        assert driver.lines == [str(n) for n in range(100)]
        folder = await saved(ground, sandbox, driver)
        await ground.reopen()
        (found,) = (await ground.engine.survivors()).values()
        await ground.crash(found)
        assert (await found.ended()).how in (How.LOST, How.KILLED)
        copy, driver = await restored(ground, folder)
        assert await driver.value("x") == "1"
        await found.destroy()
        await copy.destroy()
        await ground.leaves_nothing()

    async def test_a_sandbox_that_dies_together_with_the_warden_is_lost(self, ground: GvisorGround) -> None:
        sandbox, _ = await started(ground)
        other, driver = await started(ground)
        for pid in (ground.engine.warden_pid, *ground.pids(sandbox)):
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            assert (await sandbox.ended()).how is How.LOST
        assert await driver.value("1") == "1"
        await sandbox.destroy()
        await other.destroy()
        await ground.leaves_nothing()

    async def test_a_killed_server_leaves_its_sandboxes_but_not_its_pools(self, ground: GvisorGround, runsc: Path) -> None:
        await ground.engine.close()
        server, id, _ = await _hold(ground, runsc)
        server.kill()
        await server.wait()
        await ground.open()
        assert list(await ground.engine.survivors()) == [id]
        await until(lambda: set(processes.scan(ground.places.state)) == {id})
        (found,) = (await ground.engine.survivors()).values()
        assert (await Driver(found.link).attach(epoch=1)).epoch == 0
        await found.destroy()
        await ground.leaves_nothing()

    async def test_nothing_lives_on_when_server_and_warden_are_killed_and_the_rest_is_swept(self, ground: GvisorGround, runsc: Path) -> None:
        await ground.engine.close()
        server, _, warden = await _hold(ground, runsc)
        os.kill(warden, signal.SIGKILL)
        server.kill()
        await server.wait()
        await ground.open()
        assert not await ground.engine.survivors()
        await ground.leaves_nothing()

    async def test_a_warden_whose_data_folder_was_removed_ends_with_everything_it_holds(
        self, tmp_path: Path, runsc: Path, minimal_image: Image
    ) -> None:
        ground = GvisorGround(tmp_path / "data", runsc, minimal_image, PoolSettings(empty=0))
        server, id, warden = await _hold(ground, runsc)
        pidfd = os.pidfd_open(warden)
        shutil.rmtree(ground.data)
        server.kill()
        await server.wait()
        await until(lambda: bool(select.select([pidfd], [], [], 0)[0]))
        os.close(pidfd)
        assert id not in processes.scan(ground.places.state)
        assert not ground.cgroups()


@pytest.fixture(scope="module")
def user_folder() -> Iterator[Path]:
    """Where an ordinary user can reach it: pytest's own folders are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="everforge-user-", dir="/var/tmp"))
    os.chown(folder, USER, USER)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def given(user_folder: Path, runsc: Path, minimal_image: Image) -> tuple[list[str], list[str]]:
    return _give_to_user(user_folder, runsc, minimal_image)


class TestWithoutRoot:
    async def _run(self, folder: Path, given: tuple[list[str], list[str]], action: str) -> str:
        command, places = given
        process = await asyncio.create_subprocess_exec(
            *command, action, *places, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder
        )
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()[-1000:]
        await until(lambda: not (folder / "data" / "run").exists())
        return out.decode()

    async def test_an_ordinary_user_can_start_save_and_restore(self, user_folder: Path, given: tuple[list[str], list[str]]) -> None:
        told = await self._run(user_folder, given, "probe")
        assert told.startswith("True true "), told

    async def test_without_control_groups_a_greedy_sandbox_is_ended_and_its_neighbour_goes_on(
        self, user_folder: Path, given: tuple[list[str], list[str]]
    ) -> None:
        told = await self._run(user_folder, given, "hog")
        assert told == "out_of_memory over its limit of 64 MB 42\n", told
