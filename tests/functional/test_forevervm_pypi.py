"""ForeverVM's package `forevervm` of the Python package index, as published: a launcher, which fetches the command line and runs it."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from everforge.folders import cache_folder
from kit.cargo import needs_cargo
from kit.commandserver import CommandServer, command_server
from kit.forevervmcli import VERSION, Person, command_line, name_in

pytestmark = [
    pytest.mark.gvisor,
    pytest.mark.slow,
    needs_cargo,
    pytest.mark.timeout(2700),  # from nothing, the command line is built first
]
REQUIREMENT = f"forevervm=={VERSION} --hash=sha256:3cc96bf4dccc8f0a51f0d8faa204eec096702a155f230e5987a538d6479fbf8e"
INSTALL_SECONDS = 300


def installed() -> Path:
    """Its command, in an environment of its own that is kept by what is in it and by the Python that runs it. Clones share it, and make it one by one."""
    mark = hashlib.sha256(f"{REQUIREMENT} {sys.base_prefix} {sys.version}".encode()).hexdigest()[:16]
    folder = cache_folder() / "python-tests" / mark
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            install(folder)
            (folder / "complete").touch()
    return folder / "bin" / "forevervm"


def install(folder: Path) -> None:
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write(REQUIREMENT)
        wanted.flush()
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        run(*pip, "--require-hashes", "--requirement", wanted.name)


def run(*words: str) -> None:
    subprocess.run(words, check=True, timeout=INSTALL_SECONDS)


@pytest.fixture(scope="module")
def binary() -> Path:
    return command_line()


@pytest.fixture
def person(binary: Path, tmp_path: Path) -> Person:
    """To whom it has come already: it would fetch it from where it was published, and no test goes there. This one is built from the same version."""
    kept = tmp_path / ".cache" / "forevervm" / f"{sys.platform}-{platform.machine()}-{VERSION}" / "forevervm"
    kept.parent.mkdir(parents=True)
    kept.symlink_to(binary)
    return Person(installed(), tmp_path)


@pytest.fixture(scope="module")
def served(binary: Path) -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


def test_the_launcher_hands_everything_to_the_command_line(served: CommandServer, person: Person) -> None:
    assert person.says("--version") == (0, f"forevervm {VERSION}\n")
    status, shown = person.logs_in(served.url, served.token)
    assert (status, shown.splitlines()[-1]) == (0, "Logged in as owner")
    assert person.says("whoami") == (0, f"Logged in to {served.url}/ as owner\n")
    name = name_in(person.says("machine", "new", "--tag", "from=pypi")[1])
    assert person.says("machine", "list", "--tag", "from=pypi")[1].splitlines()[:2] == ["Machines:", name]
    with person.at("repl", name) as screen:
        assert name_in(screen.prompted()) == name
        assert screen.runs("print('hello'); 6 * 7") == "hello\n42\n"
        assert screen.runs("1 / 0") == "Error: ZeroDivisionError: division by zero\n"
        screen.types("\x03")
        assert screen.ends() == 0


def test_the_launcher_ends_well_also_when_the_command_line_did_not(person: Person) -> None:
    """A habit of its own, told in docs/forevervm.md: a script cannot go by its exit code."""
    assert person.says("whoami") == (0, "Error: Not logged in\n")
