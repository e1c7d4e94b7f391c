from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everforge.engine.warden import bundle
from everforge.engine.warden.cgroups import Cgroups, Sizes, detect

SIZES = Sizes(memory_mb=512, cpus=1.5, processes=100)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    for controller in ("memory", "pids", "cpu", "cpuset"):
        (tmp_path / controller).mkdir()
    return tmp_path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    return tmp_path


def found(mount: Path, root: bool = True, own: str = "") -> Cgroups:
    file = mount / "own"
    file.write_text(own)
    groups = detect("mark", root=root, mount=mount, own=file)
    assert groups is not None
    return groups


def fill(groups: Cgroups, id: str) -> None:
    """As the kernel does when a group is made."""
    for controller, name, _, _ in groups.files(SIZES):
        folder = groups.folder(id, controller)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_version_1_has_one_hierarchy_for_each_controller(one: Path) -> None:
    groups = found(one)
    fill(groups, "s1")
    groups.limit("s1", SIZES)
    below = "everforge-mark-s1"
    assert groups.path("s1") == f"/{below}"
    assert (one / "memory" / below / "memory.limit_in_bytes").read_text() == str(bundle.memory_bytes(512))
    assert (one / "pids" / below / "pids.max").read_text() == str(bundle.tasks(100))
    assert (one / "cpu" / below / "cpu.cfs_quota_us").read_text() == "150000"


def test_version_2_has_one_folder_for_all(two: Path) -> None:
    groups = found(two)
    fill(groups, "s1")
    groups.limit("s1", SIZES)
    folder = two / "everforge-mark-s1"
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "memory.max": str(bundle.memory_bytes(512)),
        "memory.swap.max": "0",
        "pids.max": str(bundle.tasks(100)),
        "cpu.max": "150000 100000",
    }


def test_a_limit_that_cannot_be_set_is_an_error_but_missing_swap_is_not(two: Path) -> None:
    groups = found(two)
    fill(groups, "s1")
    (groups.folder("s1", "memory") / "memory.swap.max").unlink()
    groups.limit("s1", SIZES)
    (groups.folder("s1", "memory") / "memory.max").unlink()
    (groups.folder("s1", "memory") / "memory.max").mkdir()
    with pytest.raises(OSError, match="could not be set"):
        groups.limit("s1", SIZES)


@pytest.mark.parametrize("version", [1, 2])
def test_usage_leaves_out_what_the_kernel_would_drop_first(tmp_path: Path, version: int) -> None:
    groups = Cgroups(version, tmp_path, "/everforge-mark-", managed=True)
    folder = groups.folder("s1", "memory")
    folder.mkdir(parents=True)
    assert groups.usage_bytes("s1") is None
    (folder / ("memory.current" if version == 2 else "memory.usage_in_bytes")).write_text("1000\n")
    (folder / "memory.stat").write_text(f"anon 5\n{'inactive_file' if version == 2 else 'total_inactive_file'} 300\n")
    assert groups.usage_bytes("s1") == 700


@pytest.mark.parametrize(("version", "file"), [(1, "memory.oom_control"), (2, "memory.events")])
def test_kills_for_want_of_memory_are_counted(tmp_path: Path, version: int, file: str) -> None:
    groups = Cgroups(version, tmp_path, "/everforge-mark-", managed=True)
    folder = groups.folder("s1", "memory")
    folder.mkdir(parents=True)
    assert groups.memory_kills("s1") == 0
    (folder / file).write_text("oom 9\noom_kill 2\noom_group_kill 0\n")
    assert groups.memory_kills("s1") == 2


@pytest.mark.parametrize(
    ("version", "usage", "weight", "usual", "less"),
    [
        (1, "cpuacct/everforge-mark-s1/cpuacct.usage", "cpu/everforge-mark-s1/cpu.shares", "1024", "64"),
        (2, "everforge-mark-s1/cpu.stat", "everforge-mark-s1/cpu.weight", "100", "6"),
    ],
)
def test_a_sandbox_that_gives_way_weighs_less(tmp_path: Path, version: int, usage: str, weight: str, usual: str, less: str) -> None:
    groups = Cgroups(version, tmp_path, "/everforge-mark-", managed=True)
    assert groups.cpu_seconds("s1") is None
    groups.weigh("s1", gives_way=True)  # it has just ended: nothing to be said
    for file in (usage, weight):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / usage).write_text("1500000000\n" if version == 1 else "usage_usec 1500000\nuser_usec 7\n")
    assert groups.cpu_seconds("s1") == 1.5
    groups.weigh("s1", gives_way=True)
    assert (tmp_path / weight).read_text() == less
    groups.weigh("s1", gives_way=False)
    assert (tmp_path / weight).read_text() == usual


async def test_groups_are_removed_in_every_hierarchy_and_those_of_others_stay(one: Path) -> None:
    groups = found(one)
    for hierarchy in ("memory", "pids", "cpu", "cpuset"):
        for name in ("everforge-mark-s1", "everforge-other-s2"):
            (one / hierarchy / name).mkdir()
    assert groups.strays() == {"s1"}
    assert await groups.remove("s1")
    groups.remove_home()
    assert {folder.name for folder in one.glob("*/everforge-*")} == {"everforge-other-s2"}


def test_a_user_gets_groups_where_a_part_was_delegated(two: Path) -> None:
    group = two / "user.slice" / "app"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text("cpu memory pids")
    groups = found(two, root=False, own="0::/user.slice/app\n")
    assert not groups.managed
    assert groups.folder("s1", "memory") == group / "everforge-mark" / "s1"
    assert (group / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (group / "everforge-mark" / "warden" / "cgroup.procs").read_text().isdigit()


def test_a_second_warden_of_a_user_finds_the_groups_of_the_first(two: Path) -> None:
    group = two / "user.slice"
    group.mkdir()
    (group / "cgroup.controllers").write_text("cpu memory pids")
    first = found(two, root=False, own="0::/user.slice\n")
    second = found(two, root=False, own="0::/user.slice/everforge-mark/warden\n")
    assert first.path("s1") == second.path("s1")


@pytest.mark.parametrize("own", ["", "0::/missing\n", "4:memory:/x\n", "0::/plain\n"])
def test_a_user_without_a_delegated_part_has_none(two: Path, own: str) -> None:
    (two / "plain").mkdir()
    (two / "plain" / "cgroup.controllers").write_text("cpu")
    file = two / "own"
    file.write_text(own)
    assert detect("mark", root=False, mount=two, own=file) is None


def test_a_container_whose_own_group_cannot_be_divided_has_none(two: Path) -> None:
    (two / "cgroup.subtree_control").mkdir()  # refuses to be written, as a group with processes in it does
    assert detect("mark", root=True, mount=two) is None


UNIFIED = [Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
FREE = [name for mount in UNIFIED for name in (mount / "cgroup.controllers").read_text().split()]


@pytest.fixture
def delegated() -> Iterator[Path]:
    """A group of the kernel's own, with a server and its shell in it. Which controller it has does not matter for who may hand it on."""
    group = UNIFIED[0] / f"everforge-test-{os.getpid()}"
    handed_on = UNIFIED[0] / "cgroup.subtree_control"
    before = handed_on.read_text().split()
    handed_on.write_text(f"+{FREE[0]}")
    group.mkdir()
    yield group
    for folder, _, _ in os.walk(group, topdown=False):
        Path(folder).rmdir()
    if FREE[0] not in before:
        handed_on.write_text(f"-{FREE[0]}")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not FREE, reason="no version 2 with a controller that version 1 does not use")
def test_a_real_part_of_version_2_is_divided_although_the_server_is_in_it(delegated: Path) -> None:
    code = f"""
from pathlib import Path
from everforge.engine.warden import cgroups
cgroups.CONTROLLERS = ({FREE[0]!r},)
first, second = (cgroups.detect(mark, root=False, mount=Path({str(UNIFIED[0])!r})) for mark in ("one", "two"))
print(first.path("s1"), second.path("s1"))
Path(first.folder("s1", "memory")).mkdir()
print(Path(first.folder("s1", "memory"), "cgroup.controllers").read_text())
Path(first.folder("s1", "memory")).rmdir()
"""
    enter = ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && "$@"; cat /proc/self/cgroup', str(delegated), sys.executable, "-c", code]
    done = subprocess.run(enter, capture_output=True, text=True, check=False)
    name = delegated.name
    paths, controllers, _, *groups = done.stdout.splitlines()
    assert paths == f"/{name}/everforge-one/s1 /{name}/everforge-two/s1"
    assert controllers == FREE[0]
    assert f"0::/{name}/everforge-one/warden" in groups, "the process that started it is still in the way"


def test_a_host_without_control_groups_is_seen(tmp_path: Path) -> None:
    assert detect("mark", root=True, mount=tmp_path) is None
