"""What tools/setup finds on computers that are not like this one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
WITHOUT_TOOLCHAIN = "echo 'error: no default is configured' >&2; exit 1"  # rustup's proxies, in a home without one


def rust(folder: Path, cargo: str, rustc: str = "echo rustc") -> Path:
    folder.mkdir()
    for name, does in (("cargo", cargo), ("rustc", rustc)):
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    return folder


def found(*folders: Path) -> str:
    path = ":".join([*map(str, folders), os.environ["PATH"]])
    return subprocess.run(
        [REPO / "tools" / "find_cargo"], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    ).stdout.strip()


@pytest.mark.parametrize(
    ("cargo", "rustc"),
    [
        (WITHOUT_TOOLCHAIN, WITHOUT_TOOLCHAIN),
        ("echo cargo 1.65.0", "echo rustc"),
        ("echo cargo 1.85.0", WITHOUT_TOOLCHAIN),
        ("true", "echo rustc"),
    ],
    ids=["without a toolchain", "too old", "without a compiler", "silent"],
)
def test_a_cargo_that_will_not_do_is_passed_by_for_the_next(tmp_path: Path, cargo: str, rustc: str) -> None:
    bad, good = rust(tmp_path / "bad", cargo, rustc), rust(tmp_path / "good", "echo 'cargo 1.85.0 (d73d2caf9 2024-12-31)'")
    assert found(bad, good) == str(good / "cargo")
    assert not found(bad).startswith(str(bad))


def test_a_cargo_is_asked_with_the_compiler_beside_it(tmp_path: Path) -> None:
    """As it will be run: else the first rustc in PATH, which may not work, would be taken for its own."""
    bad = rust(tmp_path / "bad", WITHOUT_TOOLCHAIN, WITHOUT_TOOLCHAIN)
    good = rust(tmp_path / "good", 'test "$(rustc)" = mine && echo cargo 1.78.0', "echo mine")
    assert found(bad, good) == str(good / "cargo")
