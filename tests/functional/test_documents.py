"""Python in the documents is what a reader pastes: each document's blocks are run, in order, against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.commandserver import CommandServer, command_server

pytestmark = pytest.mark.gvisor
REPO = Path(__file__).parents[2]
SECONDS = 240


def code(document: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL))


PROGRAMS = {path: code(path) for path in (REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))) if code(path)}
EXAMPLES = {path: path.read_text() for path in sorted((REPO / "examples").glob("*.py"))}


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


def run(program: str, server: CommandServer, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EVERFORGE_TOKEN": server.token, "EVERFORGE_URL": server.url, "FOREVERVM_TOKEN": server.token}
    program = program.replace("http://127.0.0.1:8787", server.url)  # where a server is when nobody says otherwise
    return subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.parametrize("path", [*PROGRAMS, *EXAMPLES], ids=lambda path: path.name)
def test_python_in_the_documents_runs(server: CommandServer, path: Path, tmp_path: Path) -> None:
    done = run((PROGRAMS | EXAMPLES)[path], server, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_readmes_example_says_what_it_promises(server: CommandServer, tmp_path: Path) -> None:
    done = run(code(REPO / "README.md"), server, tmp_path)
    assert done.stdout.splitlines() == ["4.0", "line 0", "line 1", "line 2", "'kept with the machine'"], done.stderr[-3000:]
