"""What tools/setup finds on computers that are not like this one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
WITHOUT_TOOLCHAIN = "echo 'error: no default is configured' >&2; exit 1"  # rustup's proxies, in a home without one


def programs(folder: Path, **do: str) -> Path:
    folder.mkdir()
    for name, does in do.items():
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    return folder


def rust(folder: Path, cargo: str, rustc: str = "echo rustc") -> Path:
    return programs(folder, cargo=cargo, rustc=rustc)


def asked(finder: str, *folders: Path) -> str:
    path = ":".join([*map(str, folders), os.environ["PATH"]])
    return subprocess.run([REPO / "tools" / finder], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60).stdout.strip()


def found(*folders: Path) -> str:
    return asked("find_cargo", *folders)


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
    good = rust(tmp_path / "good", 'test "$(rustc)" = mine && echo cargo 1.85.0', "echo mine")
    assert found(bad, good) == str(good / "cargo")


# --- node ----------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "npm"),
    [
        ("echo v18.20.4", "echo 9.2.0"),
        ("echo v24.0.0", "echo 'Cannot find module' >&2; exit 1"),
        ("exit 127", "echo 10.0.0"),
        ("true", "echo 10.0.0"),
    ],
    ids=["too old", "with an npm that does not run", "that does not run", "silent"],
)
def test_a_node_that_will_not_do_is_passed_by_for_the_next(tmp_path: Path, node: str, npm: str) -> None:
    bad, good = programs(tmp_path / "bad", node=node, npm=npm), programs(tmp_path / "good", node="echo v20.0.0", npm="echo 10.0.0")
    assert asked("find_node", bad, good) == str(good / "node")
    assert not asked("find_node", bad).startswith(str(bad))


def test_an_npm_is_asked_with_the_node_beside_it(tmp_path: Path) -> None:
    """As it will be run: else it would be judged by the first node in PATH, which may be too old for it."""
    old = programs(tmp_path / "old", node="echo v18.0.0", npm="echo 9.2.0")
    good = programs(tmp_path / "good", node="echo v20.0.0", npm='test "$(node)" = v20.0.0 && echo 10.0.0')
    assert asked("find_node", old, good) == str(good / "node")


def test_where_the_computer_has_no_node_the_one_of_the_python_packages_does() -> None:
    linked = REPO / ".venv" / "node"
    assert linked.is_dir(), "make setup-checks makes it"
    assert asked("find_node", linked) == str(linked / "node")
    env = {"PATH": f"{linked}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/")}
    for program in ("npm", "npx"):
        done = subprocess.run([linked / program, "--version"], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


# --- make ----------------------------------------------------------------------------------------------------------------------------------------


def would_run(target: str) -> str:
    """What make would do for it, without doing it."""
    return subprocess.run(["make", "--dry-run", "--no-print-directory", "-C", str(REPO), target], capture_output=True, text=True, check=True).stdout


def test_a_server_needs_no_other_language_and_tests_bring_them_along() -> None:
    assert [line for line in would_run("run").splitlines() if "tools/" in line] == ["tools/setup"]
    assert "tools/setup --tests" in would_run("test").splitlines()
    assert "tools/setup --checks" in would_run("check").splitlines()
