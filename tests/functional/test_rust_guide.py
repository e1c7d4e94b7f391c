"""docs/rust.md is a program: it is run against a real server, as its reader would run it. That the two are the same is a test of the crate."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kit.cargo import needs_cargo
from kit.commandserver import command_server
from kit.sdks import rust_example

pytestmark = [pytest.mark.gvisor, needs_cargo, pytest.mark.timeout(2700)]  # from nothing, the crate is built first
SAID = ['Some("4.0")', 'false Some("ZeroDivisionError: division by zero")', "true", "line 0", "line 1", "line 2", "interrupted"]
SAID += ['Some("10")', "kept with the machine", 'Some("3")', 'Some("42")']


def test_the_guide_of_the_rust_sdk_does_what_it_says(tmp_path: Path) -> None:
    program = rust_example("guide")
    with command_server() as server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_", "FOREVERVM_"))}
        environment |= {"EVERFORGE_TOKEN": server.token, "EVERFORGE_URL": server.url, "HOME": str(tmp_path)}
        done = subprocess.run([program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == SAID
