"""ForeverVM's Rust client as published, against `everforge serve` on the real engine: its own tests from its own package, and ours in tests/rust."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from everforge.folders import cache_folder
from kit.commandserver import CommandServer, command_server

REPO = Path(__file__).parents[2]
CARGO = subprocess.run([REPO / "tools" / "find_cargo"], capture_output=True, text=True).stdout.strip()  # the one that setup took
pytestmark = [
    pytest.mark.gvisor,
    pytest.mark.slow,
    pytest.mark.skipif(not CARGO, reason="needs cargo 1.78 or later, which tools/setup --tests installs"),
    pytest.mark.timeout(2700),  # from nothing, the crate and its dependencies are built first
]
OURS = REPO / "tests" / "rust" / "Cargo.toml"
CRATE = "forevervm-sdk"
BUILD_SECONDS = 2400  # two minutes on an idle computer of two cores
TEST_SECONDS = 240


def with_rust() -> dict[str, str]:
    """That cargo's folder first: it takes its rustc from PATH."""
    return {**os.environ, "PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}"}


def cargo(*words: str, seconds: float, **env: str) -> str:
    given = {
        **with_rust(),
        "CARGO_TARGET_DIR": str(target()),
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_TEST_DEBUG": "0",
    }
    done = subprocess.run([CARGO, *words], env={**given, **env}, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"cargo {' '.join(words)}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def target() -> Path:
    """What is built is kept outside the clone, by what it is built from and with: clones share it, and an update begins anew."""
    compiler = subprocess.run([CARGO, "--version"], env=with_rust(), capture_output=True, check=True).stdout
    return cache_folder() / "rust-tests" / hashlib.sha256(compiler + OURS.with_name("Cargo.lock").read_bytes()).hexdigest()[:16]


@pytest.fixture(scope="module")
def crate() -> Path:
    """The published package, unpacked by cargo and compared by it with the checksum in the lock; it and our tests are built."""
    found = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--manifest-path", str(OURS), seconds=BUILD_SECONDS))
    (manifest,) = [Path(p["manifest_path"]) for p in found["packages"] if (p["name"], p["version"]) == (CRATE, "0.1.35")]
    for built in (manifest, OURS):
        cargo("test", "--tests", "--locked", "--no-run", "--manifest-path", str(built), seconds=BUILD_SECONDS)
    return manifest


@pytest.fixture(scope="module")
def served(crate: Path) -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


def judge(manifest: Path, served: CommandServer) -> str:
    """Two at a time: the client's instructions have 10 seconds, and on a small computer many machines at once would need longer."""
    env = {"FOREVERVM_API_BASE": served.url, "FOREVERVM_TOKEN": served.token}
    return cargo("test", "--tests", "--locked", "--manifest-path", str(manifest), "--", "--test-threads=2", seconds=TEST_SECONDS, **env)


def test_the_crates_own_tests_pass(crate: Path, served: CommandServer) -> None:
    assert "test result: ok. 6 passed; 0 failed; 0 ignored" in judge(crate, served)


def test_tags_streams_pictures_repls_and_refusals_are_as_the_crate_expects(served: CommandServer) -> None:
    assert "test result: ok. 7 passed; 0 failed; 0 ignored" in judge(OURS, served)
