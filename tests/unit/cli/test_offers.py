"""What `everforge doctor` says of a computer is what it found by trying."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from everforge.cli import checks
from everforge.cli.cgroups import Trial
from everforge.cli.offers import file_system, package_indexes, seccomp_problem, sync_seconds, writes_directly
from everforge.cli.virtual import kvm_problem

MOUNTS = r"""
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:5 / /dev rw - devtmpfs none rw
24 22 0:7 / /srv/a\040b rw - xfs /dev/vdb rw
25 24 0:8 / /srv/a\040b/fast rw shared:1 - tmpfs none rw
""".strip()


def test_a_file_that_is_no_kvm_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "kvm").touch()
    assert "does not answer" in kvm_problem(str(tmp_path / "kvm"))
    assert "no such file" in kvm_problem(str(tmp_path / "nothing"))
    assert "does not answer" in kvm_problem("/dev/null")


@pytest.mark.root
def test_a_kvm_that_is_there_for_others_is_said_to_be_there_and_how_to_get_it(tmp_path: Path) -> None:
    """Asked by an ordinary user, in a process of its own: root may open anything."""
    device = tmp_path / "kvm"
    device.touch(0o600)
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    row = _as_a_stranger(checks._kvm, device)  # pyright: ignore[reportPrivateUsage]
    assert row["sentence"].startswith(f"{device} is there, but not for this user")
    assert "None" not in row["sentence"]
    assert "usermod -aG kvm" in row["fix"]
    assert row["status"] == "ok"


def _as_a_stranger(check: Callable[[], checks.Row], device: Path) -> dict[str, str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            checks.kvm_problem = lambda: kvm_problem(str(device))
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, json.dumps(asdict(check())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return json.loads(said.read())


@pytest.mark.parametrize("who", [0, 1000])
def test_who_has_no_group_for_processors_is_told_that_nothing_holds_machines_to_theirs(who: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: who)
    monkeypatch.setattr(checks, "try_cgroups", lambda: Trial(2, {"cpu": "not enabled"}))
    row = checks._cgroups()  # pyright: ignore[reportPrivateUsage]
    assert (row.status, "`cpus`" in row.sentence, "does not give way" in row.sentence) == ("warn", True, True)
    monkeypatch.setattr(checks, "try_cgroups", lambda: Trial(2, {"memory": "not enabled"}))
    assert "`cpus`" not in checks._cgroups().sentence  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/", "ext4"), ("/srv", "ext4"), ("/srv/a b", "xfs"), ("/srv/a b/fast/x", "tmpfs"), ("/srv/a bc", "ext4"), ("/dev/x", "devtmpfs")],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(folder: str, kind: str) -> None:
    assert file_system(Path(folder), MOUNTS) == kind


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    assert sync_seconds(tmp_path) > 0
    writes_directly(tmp_path)
    assert os.listdir(tmp_path) == []
    assert writes_directly(Path("/proc")) is False


def test_this_kernel_filters_system_calls_and_trying_it_filters_none() -> None:
    assert seccomp_problem() == ""
    assert "Seccomp:\t0" in Path("/proc/self/status").read_text()


def test_the_indexes_of_pip_are_told_without_their_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:secret@index.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    assert package_indexes()[0] == "index.example"
    assert "secret" not in checks._egress().sentence  # pyright: ignore[reportPrivateUsage]


def test_machines_in_memory_are_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "file_system", lambda folder: "tmpfs")  # pyright: ignore[reportUnknownLambdaType]
    row = checks._safety(tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert (row.status, "EVERFORGE_DATA" in row.fix) == ("warn", True)


def test_a_disk_that_is_slow_to_be_sure_is_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "sync_seconds", lambda folder: 2.0)  # pyright: ignore[reportUnknownLambdaType]
    row = checks._safety(tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert (row.status, "2000 ms" in row.sentence) == ("warn", True)
