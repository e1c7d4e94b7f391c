"""Where runsc comes from: each way it can be missing or unfit is told apart, and a good one is taken."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from everforge.engine.gvisor.supply import build, find_or_build, probe_runsc
from everforge.engine.gvisor.supply import find as find_runsc
from everforge.engine.gvisor.supply.find import VARIABLE
from everforge.progress import Silent
from everforge.wire.errors import EngineUnfit

ORDINARY_UID = 12345


@pytest.fixture(scope="module")
def runsc() -> Path:
    return find_or_build(Silent())


def script(place: Path, text: str) -> Path:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return place


def refusing(place: Path, runsc: Path, verb: str) -> Path:
    """A runsc that does everything but one thing."""
    return script(place, f'for word; do [ "$word" = {verb} ] && {{ echo "FATAL ERROR: no {verb} today" >&2; exit 128; }}; done; exec {runsc} "$@"')


# --- the trial ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.gvisor
def test_a_good_runsc_starts_saves_and_restores(runsc: Path) -> None:
    before = set(Path("/tmp").iterdir())
    outcome = probe_runsc(runsc)
    assert outcome.fit, outcome.message
    assert not [path for path in set(Path("/tmp").iterdir()) - before if path.name.startswith("everforge-probe-")]
    assert not [line for line in _commands() if "everforge-probe-" in line]


def _commands() -> list[str]:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()


@pytest.mark.gvisor
@pytest.mark.parametrize(("verb", "stage"), [("run", "start"), ("checkpoint", "save"), ("restore", "restore")])
def test_the_step_that_fails_is_named_with_the_reason(runsc: Path, tmp_path: Path, verb: str, stage: str) -> None:
    outcome = probe_runsc(refusing(tmp_path / "runsc", runsc, verb))
    assert (outcome.fit, outcome.stage) == (False, stage)
    assert f"no {verb} today" in outcome.message
    assert outcome.remedy


@pytest.mark.gvisor
def test_a_restore_that_begins_anew_is_not_taken_for_one(runsc: Path, tmp_path: Path) -> None:
    # It starts the program again instead of going on: the count tells.
    fresh = f'for word; do [ "$word" = restore ] && exec {runsc} "$1" "$2" "$3" "$4" "$5" run --detach --bundle "$9" second; done; exec {runsc} "$@"'
    outcome = probe_runsc(script(tmp_path / "runsc", fresh))
    assert (outcome.fit, outcome.stage) == (False, "restore")
    assert "three 1" in outcome.message


@pytest.mark.parametrize(
    ("content", "stage"),
    [
        ("#!/bin/sh\necho 'flag provided but not defined: -direct' >&2; exit 2\n", "flags"),
        ("#!/bin/sh\necho 'unknown platform: systrap' >&2; exit 128\n", "flags"),
        ("#!/bin/sh\nexit 0\n", "start"),
        ("\x7fELF of another kind", "exec"),
    ],
)
def test_what_is_no_fitting_runsc_is_told_apart(tmp_path: Path, content: str, stage: str) -> None:
    place = tmp_path / "runsc"
    place.write_text(content)
    place.chmod(0o755)
    outcome = probe_runsc(place)
    assert (outcome.fit, outcome.stage) == (False, stage)
    assert outcome.remedy


@pytest.mark.gvisor
@pytest.mark.root
def test_an_ordinary_user_can_use_it(runsc: Path, tmp_path: Path) -> None:
    python = "/usr/bin/python3"
    old = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode
    assert not old, f"{python} must be 3.11 or newer: ours may be out of another user's reach"
    import everforge

    folder = Path(f"/tmp/everforge-user-{os.getpid()}")
    try:
        shutil.copytree(Path(everforge.__file__).parent, folder / "everforge", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(runsc, folder / "runsc")
        program = "from pathlib import Path; from everforge.engine.gvisor.supply import probe_runsc; print(probe_runsc(Path('runsc')))"
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        argv = ["setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups", python, "-c", program]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        assert "fit=True" in done.stdout, done.stdout + done.stderr
    finally:
        shutil.rmtree(folder)


# --- finding and building ----------------------------------------------------------------------------------------------------------


def test_a_named_runsc_that_is_not_there_is_an_error_and_no_other_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(EngineUnfit, match="not a file"):
        find_or_build(Silent(), tmp_path)
    (tmp_path / "nothing").write_text("")
    with pytest.raises(EngineUnfit, match=r"chmod \+x"):
        find_or_build(Silent(), tmp_path)
    (tmp_path / "nothing").chmod(0o755)
    with pytest.raises(EngineUnfit, match=f"unset {VARIABLE}"):
        find_or_build(Silent(), tmp_path)


@pytest.mark.gvisor
def test_a_passed_trial_is_remembered_and_a_failed_one_is_not(runsc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    class Noting(Silent):
        def step(self, text: str) -> None:
            steps.append(text)

    named = refusing(tmp_path / "mine", runsc, "checkpoint")
    monkeypatch.setenv(VARIABLE, str(named))
    for _ in range(2):
        with pytest.raises(EngineUnfit, match="no checkpoint today"):
            find_or_build(Noting(), tmp_path)
    assert len(steps) == 2
    script(named, f'exec {runsc} "$@"')
    assert find_or_build(Noting(), tmp_path) == named
    assert find_or_build(Noting(), tmp_path) == named
    assert len(steps) == 3


class Go:
    """Stands in for a Go toolchain whose builds take no time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = folder / "cache"
        self.log = folder / "log"
        put = 'for word; do before=$last; last=$word; [ "$before" = -o ] && echo made > "$word"; done; true'
        go = script(folder / "go", f'echo "$1" >> {self.log}; echo package; {put}')
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setattr(build, "find_go", lambda _env: go)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    def builds(self) -> int:
        return self.log.read_text().split().count("build") if self.log.exists() else 0

    def leftovers(self) -> list[Path]:
        return list(self.cache.rglob(".workshop-*"))


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    return Go(tmp_path, monkeypatch)


def test_a_built_runsc_is_found_the_next_time(go: Go) -> None:
    path = build.build(go.cache, Silent())
    assert path.stat().st_mode & stat.S_IXUSR
    found = find_runsc(go.cache)
    assert found is not None
    assert found.path == path
    assert build.build(go.cache, Silent()) == path
    assert go.builds() == 1
    assert go.leftovers() == []


def test_a_truncated_runsc_is_found_out_and_built_again(go: Go) -> None:
    path = build.build(go.cache, Silent())
    os.truncate(path, 2)
    assert find_runsc(go.cache) is None
    assert build.build(go.cache, Silent()).read_text() == "made\n"
    assert go.builds() == 2


def test_several_builders_at_once_build_once(go: Go) -> None:
    threads = [threading.Thread(target=build.build, args=(go.cache, Silent())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert go.builds() == 1


def test_a_build_that_is_interrupted_leaves_nothing(go: Go) -> None:
    class Interrupting(Silent):
        def count(self, done: int, total: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.build(go.cache, Interrupting())
    assert go.leftovers() == []
    assert find_runsc(go.cache) is None


def test_without_go_and_without_network_the_message_says_what_to_do(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = script(tmp_path / "uv", "echo 'error: no route to host' >&2; exit 2")
    monkeypatch.setattr(build, "find_go", lambda _env: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(build, "find_uv", lambda: uv)
    with pytest.raises(EngineUnfit, match=r"no route to host.*EVERFORGE_RUNSC"):
        build.build(go.cache, Silent())
    monkeypatch.setattr(build, "find_uv", lambda: None)
    with pytest.raises(EngineUnfit, match="pip install uv"):
        build.build(go.cache, Silent())
    assert go.leftovers() == []


def test_a_source_that_cannot_be_fetched_is_said_so(go: Go, tmp_path: Path) -> None:
    script(tmp_path / "go", "echo 'dial tcp: lookup failed' >&2; exit 1")
    with pytest.raises(EngineUnfit, match=r"source of runsc could not be fetched \(dial tcp: lookup failed\)"):
        build.build(go.cache, Silent())


@pytest.mark.parametrize(
    ("version", "fits"), [("go1.26.3", True), ("go1.26.8", True), ("go1.26.2", False), ("go1.27", False), ("go1.19.8", False), ("", False)]
)
def test_only_a_go_that_was_tried_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fits: bool) -> None:
    place = script(tmp_path / "go", f"echo go version {version} linux/amd64")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert build.find_go(dict(os.environ)) == (place if fits else None)
