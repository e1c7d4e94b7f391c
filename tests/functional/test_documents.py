"""Code in the documents is what a reader pastes: each document's blocks are run, in order, against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.commandserver import CommandServer, command_server
from kit.sdks import typescript_sdk

pytestmark = [pytest.mark.gvisor, pytest.mark.timeout(900)]  # from nothing, the TypeScript SDK is built first
REPO = Path(__file__).parents[2]
SECONDS = 240


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def programs(language: str) -> dict[Path, str]:
    documents = (REPO / "README.md", *sorted((REPO / "docs").glob("*.md")))
    return {path: "\n".join(blocks(path, language)) for path in documents if blocks(path, language)}


PYTHON, JAVASCRIPT = programs("python"), programs("js")


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


def run(command: list[str | Path], server: CommandServer, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EVERFORGE_TOKEN": server.token, "EVERFORGE_URL": server.url, "FOREVERVM_TOKEN": server.token, **more}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)


def run_python(program: str, server: CommandServer, folder: Path) -> subprocess.CompletedProcess[str]:
    program = program.replace("http://127.0.0.1:8787", server.url)  # where a server is when nobody says otherwise
    return run([sys.executable, "-c", program], server, folder)


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_python_in_the_documents_runs(server: CommandServer, path: Path, tmp_path: Path) -> None:
    done = run_python(PYTHON[path], server, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("path", JAVASCRIPT, ids=lambda path: path.name)
def test_javascript_in_the_documents_runs(server: CommandServer, path: Path, tmp_path: Path) -> None:
    sdk = typescript_sdk()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "everforge").symlink_to(sdk.folder)
    (tmp_path / "program.mjs").write_text(JAVASCRIPT[path])
    done = run([sdk.node, "program.mjs"], server, tmp_path, XDG_CONFIG_HOME=str(tmp_path))  # a log-in that it keeps and deletes is not ours
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"


def test_the_readmes_example_says_what_it_promises(server: CommandServer, tmp_path: Path) -> None:
    done = run_python(PYTHON[REPO / "README.md"], server, tmp_path)
    assert done.stdout.splitlines() == ["4.0", "line 0", "line 1", "line 2", "'kept with the machine'"], done.stderr[-3000:]
