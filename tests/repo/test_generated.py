"""What is made by a program is what the program makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]


def test_the_synchronous_client_is_made_from_the_asynchronous_one() -> None:
    done = subprocess.run([sys.executable, "tools/make_sync.py", "--check"], cwd=REPO, capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_the_help_is_made_from_the_commands() -> None:
    done = subprocess.run([sys.executable, "tools/make_help.py", "--check"], cwd=REPO, capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_every_public_name_can_be_imported() -> None:
    code = "import everforge\nfor name in everforge.__all__: getattr(everforge, name)\nassert set(everforge.__all__) <= set(dir(everforge))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
