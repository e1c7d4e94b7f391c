"""Control groups are tried and not guessed at: a group is made, limited and removed."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from everforge.cli import cgroups
from everforge.cli.cgroups import CONTROLLERS, LIMITS, Kernel, Trial, try_cgroups


class FakeKernel(Kernel):
    """A new group has a file for each limit, but those that are `lacking`; one that is `stubborn` takes what is written and keeps nothing."""

    def __init__(self, version: int, *, lacking: str = "", stubborn: str = "", read_only: bool = False) -> None:
        self.version, self.lacking, self.stubborn, self.read_only = version, lacking, stubborn, read_only
        self.made = 0

    def make(self, group: Path) -> None:
        if self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(group))
        super().make(group)
        self.made += 1
        for name, (file, _) in LIMITS[self.version].items():
            if name != self.lacking and (self.version == 2 or group.parent.name == name):
                (group / file).symlink_to(os.devnull) if name == self.stubborn else (group / file).touch()

    def remove(self, group: Path) -> None:
        shutil.rmtree(group)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    for name in CONTROLLERS:
        (tmp_path / "mount" / name).mkdir(parents=True)
    return tmp_path / "mount"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """With a part of its own for this user, in which not everything is enabled."""
    (tmp_path / "mount/part").mkdir(parents=True)
    for folder, listed in (("mount", "cpu memory pids\n"), ("mount/part", "memory pids\n")):
        (tmp_path / folder / "cgroup.controllers").write_text(listed)
        (tmp_path / folder / "cgroup.subtree_control").write_text(listed)
    (tmp_path / "own").write_text("0::/part\n")
    return tmp_path / "mount"


def tried(mount: Path, kernel: FakeKernel) -> Trial:
    trial = try_cgroups(mount, mount.parent / "own", kernel)
    assert not list(mount.rglob("everforge-doctor-*")), "a group was left behind"
    return trial


def test_version_1_is_tried_in_every_hierarchy(one: Path) -> None:
    kernel = FakeKernel(1)
    assert tried(one, kernel) == Trial(1)
    assert kernel.made == len(CONTROLLERS)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "why"),
    [({"lacking": "pids"}, "no such file or directory"), ({"stubborn": "pids"}, "pids.max stayed "), ({"read_only": True}, "read-only file system")],
)
def test_a_limit_that_cannot_be_set_is_told_with_its_reason(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, version: int, kernel: dict[str, object], why: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    mount = request.getfixturevalue("one" if version == 1 else "two")
    trial = tried(mount, FakeKernel(version, **kernel))  # pyright: ignore[reportArgumentType]
    assert trial.problems["pids"] == why
    assert ("memory" in trial.problems) == ("read_only" in kernel)


def test_an_ordinary_user_has_what_its_own_part_was_given(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert tried(two, FakeKernel(2)) == Trial(2, {"cpu": f"not enabled in {two / 'part'}"})
    (two / "part/cgroup.controllers").write_text("cpu memory pids\n")
    assert tried(two, FakeKernel(2)) == Trial(2)


def test_a_part_with_processes_in_it_is_not_claimed_to_be_tried(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(file: Path, value: str) -> OSError | None:
        return OSError(errno.EBUSY, "busy")

    (two / "part/cgroup.controllers").write_text("cpu memory pids\n")
    monkeypatch.setattr(cgroups, "_write", busy)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert tried(two, FakeKernel(2)) == Trial(2, untried=True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (two / "cgroup.subtree_control").write_text("")
    assert set(tried(two, FakeKernel(2)).problems) == set(CONTROLLERS)


def test_a_host_without_control_groups_is_seen(tmp_path: Path) -> None:
    assert tried(tmp_path / "nothing", FakeKernel(1)) == Trial(0, dict.fromkeys(CONTROLLERS, "not there"))


def test_this_computer_is_tried_and_nothing_stays() -> None:
    trial = try_cgroups()
    assert set(trial.problems) <= set(CONTROLLERS)
    assert not [folder for folder, _, _ in os.walk(cgroups.MOUNT) if folder.endswith(f"everforge-doctor-{os.getpid()}")]
