"""What is made by a program is what the program makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.append(str(REPO / "tools"))
import make_contract  # noqa: E402  # pyright: ignore[reportMissingImports]
from contract import versions  # noqa: E402  # pyright: ignore[reportMissingImports]


def test_the_synchronous_client_is_made_from_the_asynchronous_one() -> None:
    done = subprocess.run([sys.executable, "tools/make_sync.py", "--check"], cwd=REPO, capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_the_help_is_made_from_the_commands() -> None:
    done = subprocess.run([sys.executable, "tools/make_help.py", "--check"], cwd=REPO, capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_a_version_that_is_raised_in_one_place_alone_is_noticed_in_every_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["make_contract.py", "--check"])
    assert (make_contract.main(), capsys.readouterr().out) == (0, "")
    monkeypatch.setattr(versions, "__version__", "9.8.7")
    assert make_contract.main() == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "sdk/typescript/package.json", "sdk/typescript/package-lock.json", "sdk/rust/Cargo.toml", "sdk/rust/Cargo.lock",
    ]  # fmt: skip


def test_every_public_name_can_be_imported() -> None:
    code = "import everforge\nfor name in everforge.__all__: getattr(everforge, name)\nassert set(everforge.__all__) <= set(dir(everforge))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
