"""Python packages for an image: resolved and installed by uv for the image's Python, which the host need not have."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from everforge.programs import find_uv, uv_environment
from everforge.wire.errors import ImageBuildFailed

from .command import run
from .recipe import Recipe, Wheel

# The oldest C library whose wheels are taken; trixie's is newer.
_PLATFORMS = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}
_REMEDY = "check the network and the package index that uv is configured with"
_TESTS_REMOVED = ("matplotlib", "mpl_toolkits", "numpy", "pandas", "scipy")  # their own test suites, a tenth of the image
SCRIPT_PYTHON = "/usr/bin/python3"


def _uv() -> Path:
    found = find_uv()
    if found is None:
        raise ImageBuildFailed("Python packages are installed by uv, which is not there; install it with `pip install uv`")
    return found


def resolve(recipe: Recipe, architecture: str) -> tuple[Wheel, ...]:
    """The recipe's Python packages and all that they need, one wheel file each, as the index has them now."""
    if not recipe.wheels:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        wanted, lock = Path(folder) / "wanted.in", Path(folder) / "pylock.toml"
        wanted.write_text("\n".join(recipe.wheels) + "\n")
        run(
            [_uv(), "pip", "compile", wanted, *_target(recipe, architecture), "--format", "pylock.toml", "--output-file", lock, "--quiet"],
            f"find the Python packages of the recipe {recipe.name!r}",
            _REMEDY,
            env=uv_environment(),
        )
        packages = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    return tuple(Wheel(package["name"], package["version"], package["wheels"][0]["hashes"]["sha256"]) for package in packages)


def install(recipe: Recipe, architecture: str, wheels: tuple[Wheel, ...], root: Path) -> None:
    """Into the place where Debian's Python looks for what its administrator installed."""
    if not wheels:
        return
    local = root / "usr/local"
    site = local / f"lib/python{recipe.python}/dist-packages"
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text("".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels))
        run(
            [_uv(), "pip", "install", "--requirement", wanted, "--target", site, *_target(recipe, architecture), "--require-hashes", "--no-deps",
             "--link-mode", "copy", "--no-compile-bytecode", "--quiet"],
            "install the Python packages",
            _REMEDY,
            env=uv_environment(),
        )  # fmt: skip
    (site / ".lock").unlink(missing_ok=True)
    _move_scripts(site, local / "bin", recipe.python)
    _correct_records(site, recipe.python)
    shutil.rmtree(site / "share", ignore_errors=True)  # manual pages and desktop files
    for tests in [path for package in _TESTS_REMOVED for path in (site / package).rglob("tests")]:
        shutil.rmtree(tests, ignore_errors=True)


def _target(recipe: Recipe, architecture: str) -> list[str]:
    return ["--python-version", recipe.python, "--python-platform", _PLATFORMS[architecture], "--only-binary", ":all:", "--python", sys.executable]


def _move_scripts(site: Path, bin: Path, python: str) -> None:
    """Commands belong on the PATH and must name the image's Python, not the host's."""
    bin.mkdir(parents=True, exist_ok=True)
    scripts = site / "bin"
    for script in sorted(scripts.iterdir()) if scripts.is_dir() else []:
        content = script.read_bytes()
        if content.startswith(b"#!") and b"python" in content.split(b"\n", 1)[0]:
            content = b"#!" + SCRIPT_PYTHON.encode() + b"\n" + content.split(b"\n", 1)[1]
        elif content.startswith(b"#!/bin/sh\n'''exec'"):  # the form used when the path of the host's Python is long
            content = b"#!" + SCRIPT_PYTHON.encode() + b"\n" + content.split(b"\n' '''\n", 1)[1]
        name = _renamed(script.name, python)
        (bin / name).write_bytes(content)
        (bin / name).chmod(0o755)
    shutil.rmtree(scripts, ignore_errors=True)


def _correct_records(site: Path, python: str) -> None:
    """What each package says it installed: so that pip can remove it, and two builds agree."""
    for record in sorted(site.glob("*.dist-info/RECORD")):
        lines: list[str] = []
        for line in record.read_text(encoding="utf-8").splitlines():
            path = line.split(",", 1)[0]
            if path.startswith("bin/"):
                lines.append(f"../../../{_renamed(path, python)},,")
            elif not path.startswith("share/") and "/uv_" not in path:
                lines.append(line)
        record.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    for marker in site.glob("*.dist-info/uv_*"):
        marker.unlink()


def _renamed(script: str, python: str) -> str:
    """One of pip's commands is named after the Python that installs it, which here is the host's."""
    return re.sub(r"\bpip3\.\d+$", f"pip{python}", script)
