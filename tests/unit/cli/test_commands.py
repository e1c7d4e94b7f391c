"""The command as people and scripts meet it: exit codes, one sentence on stderr, results on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from everforge import __version__
from everforge.cli import checks
from everforge.machines.settings import MachineSettings


def everforge(*words: str, stdout: IO[str] | int = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "everforge", *words]
    return subprocess.run(argv, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120)


def test_version_is_one_line() -> None:
    done = everforge("--version")
    assert (done.returncode, done.stdout) == (0, f"everforge {__version__}\n")


@pytest.mark.parametrize("words", [["--help"], ["-h"], [], ["machine"], ["machine", "--help"], ["image", "build", "-h"]])
def test_help_is_there_for_whoever_asks_and_whoever_names_only_a_group(words: list[str]) -> None:
    done = everforge(*words)
    assert done.returncode == 0
    assert done.stdout.startswith(" ".join(("Usage: everforge", *(word for word in words if not word.startswith("-")), "[OPTIONS]")))


@pytest.mark.parametrize("words", [["nonesuch"], ["image", "bild"], ["doctor", "--nonesuch"], ["image", "delete"]])
def test_wrong_usage_is_exit_code_2(words: list[str]) -> None:
    done = everforge(*words)
    assert done.returncode == 2
    assert done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["token", "new", "--scope", "read", "--scope", "x"], "--scope: 'x' is none of read, exec, manage"),
        (["secret", "set", "KEY", "--host", "api.example.com", "--into", "x"], "--into: 'x' is none of body, url"),
        (["machine", "new", "--egress", "x"], "--egress: 'x' is none of none, list, packages, public"),
        (["machine", "new", "--history", "x"], "--history: 'x' is none of idle, each"),
        (["machine", "new", "--durability", "x"], "--durability: 'x' is none of idle, each"),
        (["machine", "list", "--state", "x"], "--state: 'x' is none of creating, ready, busy"),
        (["egress", "set", "first", "x"], "POLICY: 'x' is none of none, list, packages, public"),
        (["egress", "default", "x"], "POLICY: 'x' is none of none, list, packages, public"),
    ],
)
def test_a_word_that_is_none_of_the_choices_is_answered_with_them_before_any_server_is_asked(words: list[str], told: str) -> None:
    done = everforge(*words, EVERFORGE_URL="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["image", "build", "nonesuch"], "default, minimal"),
        (["image", "build", "../etc"], "cannot name a recipe"),
        (["image", "delete", "nonesuch"], "everforge image list"),
        (["image", "lock", "nonesuch.toml"], "no readable recipe"),
    ],
)
def test_a_refusal_is_one_sentence_on_stderr_and_exit_code_3(tmp_path: Path, words: list[str], told: str) -> None:
    done = everforge(*words, EVERFORGE_IMAGES=str(tmp_path))
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("everforge: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["image", "list"], ["image", "list", "--json"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_cannot_be_written_is_one_sentence_on_stderr_and_exit_code_1(tmp_path: Path, words: list[str], unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = everforge(*words, stdout=full, EVERFORGE_IMAGES=str(tmp_path), PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr == "everforge: the answer could not be written: no space left on device\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["doctor"], ["image", "list"]])
def test_a_reader_who_has_seen_enough_gets_no_complaint(tmp_path: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as gone:
        done = everforge(*words, stdout=gone, EVERFORGE_IMAGES=str(tmp_path), EVERFORGE_RUNSC="/nothing")
    assert (done.returncode, done.stderr) == (141, "")


def test_an_empty_catalogue_lists_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    assert "everforge image build" in everforge("image", "list", EVERFORGE_IMAGES=str(tmp_path)).stdout
    assert json.loads(everforge("image", "list", "--json", EVERFORGE_IMAGES=str(tmp_path)).stdout) == []


def test_doctor_says_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    done = everforge("doctor", "--json", EVERFORGE_IMAGES=str(tmp_path), EVERFORGE_RUNSC=str(tmp_path / "nothing"))
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["machines_can_run"] is False
    rows = {row["name"]: row for row in told["checks"]}
    assert rows["runsc"]["status"] == "fail"
    assert rows["image default"]["fix"] == "Run `everforge image build default`."
    assert rows["python"]["status"] == "ok"
    assert all(row["fix"] for row in rows.values() if row["status"] != "ok")


@pytest.mark.parametrize(("home", "why"), [("/proc/nothing", "nothing can be made in /proc"), ("/dev/null", "/dev/null is not a folder")])
def test_doctor_says_what_is_wrong_with_a_home_that_cannot_be_used(home: str, why: str) -> None:
    done = everforge(
        "doctor", "--json", HOME=home, EVERFORGE_RUNSC="/nothing", XDG_CACHE_HOME="", XDG_DATA_HOME="", EVERFORGE_CACHE="", EVERFORGE_DATA=""
    )
    rows = {row["name"]: row for row in json.loads(done.stdout)["checks"]}
    for name, variable in (("data folder", "EVERFORGE_DATA"), ("cache folder", "EVERFORGE_CACHE")):
        assert rows[name]["status"] == "fail"
        assert f"cannot be written: {why}" in rows[name]["sentence"]
        assert variable in rows[name]["fix"]


def test_doctor_warns_of_a_disk_that_one_machine_can_fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERFORGE_DATA", str(tmp_path))
    assert (MachineSettings().disk_mb << 20) // 1_000_000 == checks.MACHINE_DISK_MB
    for free_mb, status in ((checks.MACHINE_DISK_MB - 1, "warn"), (checks.MACHINE_DISK_MB, "ok")):
        free = SimpleNamespace(free=free_mb * 1_000_000)
        monkeypatch.setattr(checks.shutil, "disk_usage", lambda _, free=free: free)
        row = checks._disk("data folder", tmp_path, "EVERFORGE_DATA")  # pyright: ignore[reportPrivateUsage]
        assert row.status == status
        assert ("disk_mb" in row.fix) == (status == "warn")


@pytest.mark.parametrize(("words", "setting"), [(["image", "build", "minimal"], "EVERFORGE_IMAGES"), (["setup"], "EVERFORGE_CACHE")])
def test_a_folder_that_is_a_file_is_named(tmp_path: Path, words: list[str], setting: str) -> None:
    (tmp_path / "file").touch()
    settings: dict[str, Any] = {setting: str(tmp_path / "file")}
    done = everforge(*words, EVERFORGE_RUNSC="", **settings)
    assert done.returncode == 3
    assert f"{tmp_path / 'file'}" in done.stderr
    assert f"set {setting}" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.gvisor
def test_doctor_is_content_after_setup() -> None:
    done = everforge("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("Machines can run here.\n")
    assert "\x1b" not in done.stdout
